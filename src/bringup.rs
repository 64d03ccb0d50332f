//! What runs in a kernel: at boot, when a CPU comes or goes, around sleep, and when the map changes.
//!
//! In the order of the data flow, each module uses only the ones above it, the crate's words and
//! [`crate::analysis`].

pub mod cacheability;
pub mod delta;

pub mod program;
pub mod rendezvous;

pub mod report;
pub mod sync;

//! What answers questions about a register file: plain values in, plain values out, on any CPU of any
//! machine, at any time. Nothing here reads or writes a register.
//!
//! In the order of the data flow: each module uses only the ones above it and the crate's words.

pub mod lookup;

pub mod compare;
pub mod layout;

pub mod diagnose;

pub mod reserve;

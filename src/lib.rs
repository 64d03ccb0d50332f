#![cfg_attr(not(any(feature = "sim", test)), no_std)]
#![cfg_attr(feature = "sim", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sim"),
    doc = "MTRR and PAT bring-up for x86-64 kernels: see the README."
)]
#![deny(
    missing_docs,
    missing_debug_implementations,
    unsafe_op_in_unsafe_fn,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::missing_safety_doc,
    clippy::missing_errors_doc
)]
// Under the model checker only the models make these: a loom atomic cannot be in a static.
#![cfg_attr(all(loom, not(test)), allow(dead_code))]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::indexing_slicing))]

// The order is the data flow: each module uses only the ones above it (and `error`).
pub mod error;
pub mod memtype;

pub mod regs;

pub mod ranges;

pub mod overlap;

pub mod combine;
pub mod pat;

pub mod atomic;
pub mod cpu;

pub mod policy;
pub mod topology;

pub mod platform;
pub mod routing;
pub mod snapshot;

pub mod lookup;

pub mod cacheability;
pub mod compare;
pub mod layout;

pub mod delta;
pub mod diagnose;

pub mod program;
pub mod rendezvous;

pub mod report;
pub mod sync;

pub mod reserve;

#[cfg(feature = "sim")]
pub mod sim;

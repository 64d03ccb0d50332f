#![cfg_attr(not(any(feature = "sim", test)), no_std)]
#![cfg_attr(feature = "sim", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sim"),
    doc = "MTRR and PAT bring-up for x86-64 kernels: see the README."
)]
//!
//! # In a kernel
//! What gives every CPU the same memory types, and keeps it so. Start with the [`guide`]: a whole life,
//! each call with its CPU and interrupt state, the orders of hot-unplug and S3, each error and what to
//! do about it. `use mtrr_pat::prelude::*` has the names.
//! - [`sync`]: the life cycle a kernel calls: boot, APs, rendezvous, suspend, resume, change, check
//! - [`policy`]: what the kernel asks for: early or deferred, which PAT, how long to wait
//! - [`topology`]: which CPUs share a core, and the order to start them in
//! - [`platform`]: what the machine can do, found out once
//! - [`report`]: what became of each CPU
//! - [`rendezvous`], [`program`], [`delta`]: who waits for whom, what one CPU does, what it has to write
//! - [`cacheability`]: whether a change owes a cache flush
//!
//! # Questions
//! Pure functions over plain values: no CPU, no privilege, no heap.
//! - [`lookup`]: which type has this address, this range, the whole space?
//! - [`compare`]: do two CPUs agree?
//! - [`diagnose`]: what did the firmware do wrong, and what helps?
//! - [`layout`]: which variable ranges make this map?
//! - [`reserve`]: may this physical range be mapped with this type?
//!
//! # Words for both
//! [`memtype`], [`regs`], [`ranges`], [`overlap`], [`combine`] and [`pat`] are the hardware's rules;
//! [`snapshot`] is what one CPU holds and [`routing`] what firmware alone decides; [`cpu`] and
//! [`atomic`] are what is asked of the machine, [`error`] is what can go wrong.
#![cfg_attr(feature = "sim", doc = "[`sim`] is a machine to try all this on.")]
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

// The words come first, in the order of the data flow: each module uses only the ones above it (and
// `error`). Then the two halves, which are built from them.
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

mod analysis;
mod bringup;

pub use analysis::{compare, diagnose, layout, lookup, reserve};
pub use bringup::{cacheability, delta, program, rendezvous, report, sync};

pub mod guide;
pub mod prelude;

#[cfg(feature = "sim")]
pub mod sim;

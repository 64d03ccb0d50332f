//! A simulated machine: cores, threads, MSR scopes, faults, an event log and a cost model.
//!
//! For tests and demonstrations, with `std` and a heap. It knows the manuals' rules, not the rest
//! of this crate, and objects when they are broken.
#![allow(clippy::indexing_slicing)] // CPU numbers index tables built for them; a wrong one is the test's mistake

mod check;
mod config;
mod cost;
mod cpu;
mod cpuid;
mod fault;
mod firmware;
mod log;
mod machine;
mod registers;
mod sched;
mod state;
mod types;
mod work;

pub use check::{Rule, Violation, Violations};
pub use config::{
    Config, Init, Mapping, MtrrScope, Numbering, Schedule, Trampoline, Vendor, firmware_map,
};
pub use cost::{BusContention, Costs};
pub use cpu::SimCpu;
pub use fault::{At, Fault, What};
pub use firmware::{CR0_KERNEL, CR0_RESET, Rewrite, S3, Scribble};
pub use log::{Counters, Event, Op};
pub use machine::{Machine, Stop};
pub(crate) use sched::shared_touch;
pub use work::Ipis;

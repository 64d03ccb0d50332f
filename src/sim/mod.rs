//! A simulated machine: cores, threads, MSR scopes, faults, an event log and a cost model.
//!
//! For tests and demonstrations, with `std` and a heap. It knows the manuals' rules, not the rest
//! of this crate, and objects when they are broken.
#![allow(clippy::indexing_slicing)] // CPU numbers index tables built for them; a wrong one is the test's mistake

mod check;
mod config;
mod cost;
mod counters;
mod cpu;
mod cpuid;
mod fault;
mod firmware;
mod log;
mod machine;
mod msr;
mod ops;
mod place;
mod registers;
mod run;
mod sched;
mod sleep;
mod state;
mod time;
mod tlb;
mod touch;
mod types;
mod work;

pub use check::{Rule, Violation, Violations};
pub use config::{Config, Init, Mapping, MtrrScope, Numbering, Schedule, Trampoline, Vendor};
pub use cost::{BusContention, Costs};
pub use counters::Counters;
pub use cpu::SimCpu;
pub use fault::{At, Fault, What};
pub use firmware::{CR0_KERNEL, CR0_RESET, Rewrite, S3, Scribble};
pub use log::{Activity, Event, Op, Span};
pub use machine::Machine;
pub use place::firmware_map;
pub use run::Stop;
pub(crate) use touch::shared_touch;

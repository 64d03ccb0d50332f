//! The kernel's half on the simulated machine: what one CPU does, and what many do together, from
//! boot through hot-plug and sleep, healthy and not.
#![cfg(feature = "sim")]

#[path = "../common/mod.rs"]
mod common;

mod amd_dram_bits;
mod announced_msrs;
mod cacheability;
mod cpu_states;
mod early;
mod event_lists;
mod faults;
mod kick_order;
mod parallel_bringup;
mod random;
mod register_sets;
mod rendezvous;
mod repeated_calls;
mod restarted_ap;
mod routing;
mod siblings;
mod sleep_resume;
mod stale_lines;
mod suspend_and_hotplug;
mod virtual_machines;
mod wrong_numbers;

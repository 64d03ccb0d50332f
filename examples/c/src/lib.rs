//! `mtrr-pat` as a static library for kernels in C: `mtrr_pat.h` has the functions.
//!
//! One machine, one state: a `static` of up to [`MTRR_PAT_CPUS`] CPUs. A function's result is a
//! [`mtrr_pat_code`](code::mtrr_pat_code); what else there is to say goes to a
//! [`struct mtrr_pat_info`](info::mtrr_pat_info), where the caller wants it.
#![no_std]
#![allow(
    non_camel_case_types,
    reason = "names as a kernel in C spells its own types"
)]
#![deny(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::unwrap_used,
    clippy::indexing_slicing
)]

pub mod code;
pub mod info;
pub mod life;
pub mod lines;
pub mod map;
pub mod meet;
mod panic;
pub mod sleep;
pub mod types;

use mtrr_pat::cpu::native::NativeCpu;
use mtrr_pat::sync::CacheSync;

/// CPUs there is room for: numbers are below this.
pub const MTRR_PAT_CPUS: usize = 256;

static SYNC: CacheSync<MTRR_PAT_CPUS> = CacheSync::new();

/// The CPU that runs this. A refused RDMSR or WRMSR becomes an error if the kernel's #GP handler asks
/// `mtrr_pat_fixup`; else the handler has it like any other fault.
///
/// # Safety
/// The duties of [`NativeCpu::claim`], which the header passes on to the kernel.
unsafe fn this_cpu() -> NativeCpu {
    // SAFETY: the caller's promise.
    unsafe { NativeCpu::claim_catching() }
}

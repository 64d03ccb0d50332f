//! RDMSR and WRMSR that survive #GP: `mtrr_pat`'s, whose `fixup` the handler in `traps.rs` asks.

use mtrr_pat::cpu::native::catching::{rdmsr, wrmsr};
use mtrr_pat::regs::MsrAddr;

/// Reads an MSR, or says that the CPU refused.
pub fn read(msr: u32) -> Option<u64> {
    // SAFETY: kernel code; what this kernel reads has no effect.
    unsafe { rdmsr(MsrAddr(msr)) }.ok()
}

/// Writes an MSR; false when the CPU refused.
///
/// # Safety
/// What the write does to the machine is the caller's business.
pub unsafe fn write(msr: u32, value: u64) -> bool {
    // SAFETY: as the caller says.
    unsafe { wrmsr(MsrAddr(msr), value) }.is_ok()
}

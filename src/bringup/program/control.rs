//! CR0, CR3, CR4 and RFLAGS.IF: flushing the TLB, turning caching on, masking interrupts.

use crate::cpu::{CR0_CD, CR0_NW, CR4_PCIDE, CR4_PGE, CpuOps};

/// Flushes every TLB entry of this logical processor, global ones and those of all PCIDs: PGE is
/// toggled and left as it was.
///
/// Source: Intel SDM 3A, "Operations that Invalidate TLBs and Paging-Structure Caches".
pub fn flush_tlb(cpu: &mut impl CpuOps) {
    let cr4 = cpu.read_cr4();
    // SAFETY: only PGE differs, and is put back.
    unsafe { cpu.write_cr4(cr4 ^ CR4_PGE) };
    // SAFETY: what was read.
    unsafe { cpu.write_cr4(cr4) };
}

/// Clears CR0.CD and CR0.NW, if one is set: whether one was.
pub(crate) fn turn_caching_on(cpu: &mut impl CpuOps) -> bool {
    let cr0 = cpu.read_cr0();
    let off = cr0 & (CR0_CD | CR0_NW) != 0;
    if off {
        // SAFETY: both bits clear: caches on, which is what everybody relies on.
        unsafe { cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW)) };
    }
    off
}

/// Runs `f` with interrupts masked, and leaves RFLAGS.IF as it was.
pub(crate) fn masked<C: CpuOps, R>(cpu: &mut C, f: impl FnOnce(&mut C) -> R) -> R {
    let enabled = cpu.interrupts_enabled();
    if enabled {
        cpu.cli();
    }
    let result = f(cpu);
    if enabled {
        cpu.sti();
    }
    result
}

/// Flushes the TLB while PGE is clear: CR3 reaches the current PCID only.
pub(super) fn flush_without_global(cpu: &mut impl CpuOps, cr4: u64) {
    if cr4 & CR4_PCIDE != 0 {
        // SAFETY: only PGE differs, and is cleared again.
        unsafe { cpu.write_cr4(cr4 | CR4_PGE) };
        // SAFETY: what this CPU had.
        unsafe { cpu.write_cr4(cr4) };
    } else {
        let cr3 = cpu.read_cr3();
        // SAFETY: what was just read, with interrupts masked.
        unsafe { cpu.write_cr3(cr3) };
    }
}

//! The native CPU: the only inline assembly of the crate.
//!
//! Owns the instructions; refuses to know why they are executed. Exists on x86_64 only.

pub mod catching;

use core::arch::asm;
use core::marker::PhantomData;

use x86_64::instructions::interrupts;
use x86_64::registers::control::{Cr0, Cr4};

use super::{CpuOps, CpuidWords, MsrFault};
use crate::atomic::{Ordering, Word};
use crate::regs::MsrAddr;

/// Reads an MSR; catches the fault if it can.
pub type ReadMsr = fn(MsrAddr) -> Result<u64, MsrFault>;
/// Writes an MSR; catches the fault if it can.
pub type WriteMsr = fn(MsrAddr, u64) -> Result<(), MsrFault>;

/// The logical processor that runs this code, at privilege level 0.
///
/// Not `Send` and not `Sync`: it must not reach another CPU. Zero-cost to claim; claim it where
/// it is needed rather than keep it.
#[derive(Debug)]
pub struct NativeCpu {
    rdmsr: ReadMsr,
    wrmsr: WriteMsr,
    // A raw pointer makes the type stay on its CPU's own control flow.
    _this_cpu: PhantomData<*mut ()>,
}

impl NativeCpu {
    /// Claims this logical processor; a fault on an MSR access goes to the kernel's own handler.
    ///
    /// Claims may nest: the handler of a hold or rendezvous interrupt claims again.
    ///
    /// # Safety
    /// The caller promises, for as long as the value lives:
    /// 1. The code runs at privilege level 0 in 64-bit mode, and is not moved to another logical
    ///    processor.
    /// 2. Nobody else (firmware run-time code called by the kernel, another driver) changes MTRRs,
    ///    PAT, CR0.CD, CR0.NW or CR4.PGE of this processor meanwhile.
    /// 3. Code, stack and this crate's statics are mapped and stay mapped with the memory types
    ///    the kernel means them to have, before and after the change.
    /// 4. NMI and machine-check handlers that run meanwhile do not call this crate. In a window they
    ///    run with caches off and may find E clear: every access of theirs goes to memory, so they
    ///    touch little, on a stack of their own, take no lock and execute no locked instruction,
    ///    write none of the registers of duty 2, and return to where they came from. CR4.MCE stays as
    ///    the kernel has it; a machine check while it is clear shuts the machine down, here as
    ///    elsewhere.
    /// 5. Nothing in the target state that will be applied makes memory the kernel uses
    ///    unreachable or changes what a device range means to a driver that is running.
    /// 6. Calls made with it give this processor's own number. Where it was declared with an APIC id,
    ///    that is checked too.
    #[must_use]
    pub unsafe fn claim() -> Self {
        Self {
            rdmsr: rdmsr_plain,
            wrmsr: wrmsr_plain,
            _this_cpu: PhantomData,
        }
    }

    /// Claims this logical processor, with the MSR access of [`catching`]: for a kernel whose #GP handler
    /// asks [`catching::fixup`]. It is what to claim where registers may refuse: under a hypervisor, on
    /// processors nobody has tried. Then a refusal is a typed error, and not the end of the kernel.
    ///
    /// # Safety
    /// As for [`NativeCpu::claim`].
    #[must_use]
    pub unsafe fn claim_catching() -> Self {
        // SAFETY: both execute that one instruction, at the privilege level of duty 1.
        unsafe { Self::claim_with(rdmsr_catching, wrmsr_catching) }
    }

    /// Claims this logical processor, with the kernel's own fault-catching MSR access.
    ///
    /// # Safety
    /// As for [`NativeCpu::claim`], and:
    ///
    /// 7. `rdmsr` and `wrmsr` execute that one instruction on this processor, and return
    ///    [`MsrFault`] if and only if it raised #GP, having changed nothing. They take no lock,
    ///    log nothing and touch no memory but their own stack: they run with caches off.
    #[must_use]
    pub unsafe fn claim_with(rdmsr: ReadMsr, wrmsr: WriteMsr) -> Self {
        Self {
            rdmsr,
            wrmsr,
            _this_cpu: PhantomData,
        }
    }
}

fn rdmsr_plain(msr: MsrAddr) -> Result<u64, MsrFault> {
    let (low, high): (u32, u32);
    // SAFETY: privilege level 0 by duty 1 of `claim`, the only door to this function. No `nomem`:
    // the order against memory accesses matters to whoever changes memory types.
    unsafe {
        asm!("rdmsr", in("ecx") msr.0, out("eax") low, out("edx") high,
             options(nostack, preserves_flags));
    }
    Ok(u64::from(high) << 32 | u64::from(low))
}

fn rdmsr_catching(msr: MsrAddr) -> Result<u64, MsrFault> {
    // SAFETY: privilege level 0 by duty 1; `mtrr_pat` reads nothing that has an effect.
    unsafe { catching::rdmsr(msr) }
}

fn wrmsr_catching(msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
    // SAFETY: as for `wrmsr_plain`.
    unsafe { catching::wrmsr(msr, value) }
}

fn wrmsr_plain(msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
    // SAFETY: privilege level 0 by duty 1 of `claim`; what the write does to memory types is
    // covered by duties 2, 3 and 5. No `nomem`: it changes how memory behaves.
    unsafe {
        asm!("wrmsr", in("ecx") msr.0, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
    Ok(())
}

// SAFETY: by duty 1 of `claim` it is on its own processor; each method is the instruction.
unsafe impl CpuOps for NativeCpu {
    #[inline]
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault> {
        (self.rdmsr)(msr)
    }

    #[inline]
    unsafe fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
        (self.wrmsr)(msr, value)
    }

    #[inline]
    fn read_cr0(&mut self) -> u64 {
        Cr0::read_raw()
    }

    #[inline]
    unsafe fn write_cr0(&mut self, value: u64) {
        // SAFETY: the caller's promise; privilege level 0 by duty 1.
        unsafe { Cr0::write_raw(value) }
    }

    #[inline]
    fn read_cr3(&mut self) -> u64 {
        let value: u64;
        // SAFETY: privilege level 0 by duty 1; the read has no side effect.
        unsafe {
            asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }

    #[inline]
    unsafe fn write_cr3(&mut self, value: u64) {
        // SAFETY: the caller's promise; privilege level 0 by duty 1. No `nomem`: translations are
        // dropped.
        unsafe {
            asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags));
        }
    }

    #[inline]
    fn read_cr4(&mut self) -> u64 {
        Cr4::read_raw()
    }

    #[inline]
    unsafe fn write_cr4(&mut self, value: u64) {
        // SAFETY: the caller's promise; privilege level 0 by duty 1.
        unsafe { Cr4::write_raw(value) }
    }

    #[inline]
    fn wbinvd(&mut self) {
        // SAFETY: privilege level 0 by duty 1; nothing is lost, caches are written back. No
        // `nomem`: earlier stores must have been issued before it.
        unsafe {
            asm!("wbinvd", options(nostack, preserves_flags));
        }
    }

    #[inline]
    fn mfence(&mut self) {
        // SAFETY: every 64-bit processor has it, and it changes nothing. No `nomem`: it orders memory.
        unsafe {
            asm!("mfence", options(nostack, preserves_flags));
        }
    }

    #[inline]
    fn interrupts_enabled(&mut self) -> bool {
        interrupts::are_enabled()
    }

    #[inline]
    fn cli(&mut self) {
        interrupts::disable();
    }

    #[inline]
    fn sti(&mut self) {
        interrupts::enable();
    }

    #[inline]
    fn pause_while(&mut self, word: &Word, seen: u32, _deadline: u64) {
        /// Some microseconds: the caller flushes lines that others write and reads its clock, which
        /// an emulator keeps behind a lock, only so often.
        const PAUSES: u32 = 128;
        for _ in 0..PAUSES {
            core::hint::spin_loop();
            if word.load(Ordering::Relaxed) != seen {
                return;
            }
        }
    }

    #[inline]
    fn rdtsc(&mut self) -> u64 {
        // SAFETY: RDTSC exists on every 64-bit processor; at privilege level 0 CR4.TSD does not matter.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    #[inline]
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidWords {
        // Safe on every 64-bit processor, whatever the leaf.
        #[allow(unused_unsafe)]
        // SAFETY: every 64-bit processor has CPUID.
        let words = unsafe { core::arch::x86_64::__cpuid_count(leaf, subleaf) };
        CpuidWords {
            eax: words.eax,
            ebx: words.ebx,
            ecx: words.ecx,
            edx: words.edx,
        }
    }
}

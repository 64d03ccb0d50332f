//! What the crate asks of one CPU: one trait method per instruction.
//!
//! Owns the seam between decisions and hardware; refuses to know any order of instructions. The
//! type parameter sits on the methods that take a CPU, never on a struct, so statics stay plain.

use core::fmt;

use raw_cpuid::{CpuIdReader, CpuIdResult};

use crate::atomic::Word;
use crate::regs::MsrAddr;

#[cfg(target_arch = "x86_64")]
pub mod native;

/// RDMSR or WRMSR raised #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsrFault;

impl fmt::Display for MsrFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("general protection fault on an MSR access")
    }
}

impl core::error::Error for MsrFault {}

/// CR0.CD: caches are in no-fill mode.
pub const CR0_CD: u64 = 1 << 30;
/// CR0.NW: set together with CD by reset; must be clear when CD is.
pub const CR0_NW: u64 = 1 << 29;
/// CR4.PGE: global pages.
pub const CR4_PGE: u64 = 1 << 7;
/// CR4.PCIDE: process-context identifiers.
pub const CR4_PCIDE: u64 = 1 << 17;

/// The four registers CPUID returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct CpuidWords {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// The logical processor this code runs on.
///
/// Implemented by [`native::NativeCpu`] for real hardware and by the simulated machine. Each
/// method is one instruction, so that an event log shows the order of them, which is what this
/// crate is about. What could break memory in the wrong hands is `unsafe` to call:
///
/// ```compile_fail,E0133
/// use mtrr_pat::cpu::CpuOps;
///
/// fn from_safe_code(cpu: &mut impl CpuOps) {
///     cpu.write_cr3(0);
/// }
/// ```
///
/// # Safety
/// A value stands for the processor that executes the code that holds it: each method executes its
/// instruction there, and says of it what is so. Others are told on its word that this CPU stands still,
/// or has the registers they have.
pub unsafe trait CpuOps {
    /// RDMSR.
    ///
    /// # Errors
    /// [`MsrFault`] when the register does not exist (where faults can be caught).
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault>;
    /// WRMSR.
    ///
    /// # Errors
    /// [`MsrFault`] when the register or the value is refused; nothing was written.
    ///
    /// # Safety
    /// What the register does with this value keeps every promise the running code relies on: about
    /// the memory it uses, and about who else shares the register.
    unsafe fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault>;
    /// MOV from CR0.
    fn read_cr0(&mut self) -> u64;
    /// MOV to CR0.
    ///
    /// # Safety
    /// `value` is what was read but for CD and NW, never NW without CD; while CD is set, no other thread
    /// of the core relies on its caches.
    unsafe fn write_cr0(&mut self, value: u64);
    /// MOV from CR3.
    fn read_cr3(&mut self) -> u64;
    /// MOV to CR3 of what was read from it: flushes the non-global TLB entries of this address
    /// space on this logical processor.
    ///
    /// # Safety
    /// `value` is what was read, with nothing in between that changes it.
    unsafe fn write_cr3(&mut self, value: u64);
    /// MOV from CR4.
    fn read_cr4(&mut self) -> u64;
    /// MOV to CR4. Toggling PGE flushes every TLB entry of this logical processor.
    ///
    /// # Safety
    /// `value` is what was read but for PGE.
    unsafe fn write_cr4(&mut self, value: u64);
    /// WBINVD: writes back and invalidates the caches.
    fn wbinvd(&mut self);
    /// MFENCE: every earlier load and store of this CPU is done before any later one. Never a locked
    /// instruction, which is a bus lock on a CPU whose MTRRs are off.
    fn mfence(&mut self);
    /// Whether RFLAGS.IF is set.
    fn interrupts_enabled(&mut self) -> bool;
    /// CLI.
    fn cli(&mut self);
    /// STI.
    fn sti(&mut self);
    /// One step of a wait for `word` to stop being `seen`: natively PAUSEs, for some microseconds at
    /// most. May return at any time; the caller loops. A simulated CPU sleeps here until the word
    /// changes or its time-stamp counter reaches `deadline`.
    fn pause_while(&mut self, word: &Word, seen: u32, deadline: u64);
    /// RDTSC. Ticks of this CPU; never compared with another CPU's.
    fn rdtsc(&mut self) -> u64;
    /// CPUID.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidWords;
}

/// Reads CPUID through a [`CpuOps`]: for `raw-cpuid`, and for [`crate::topology`].
///
/// ```
/// use mtrr_pat::cpu::{CpuOps, CpuidReader};
///
/// fn apic_id(cpu: &impl CpuOps) -> u32 {
///     mtrr_pat::topology::own_apic_id(&CpuidReader(cpu))
/// }
/// ```
#[derive(Debug)]
pub struct CpuidReader<'a, C>(pub &'a C);

impl<C> Clone for CpuidReader<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for CpuidReader<'_, C> {}

impl<C: CpuOps> CpuIdReader for CpuidReader<'_, C> {
    fn cpuid2(&self, eax: u32, ecx: u32) -> CpuIdResult {
        let CpuidWords { eax, ebx, ecx, edx } = self.0.cpuid(eax, ecx);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

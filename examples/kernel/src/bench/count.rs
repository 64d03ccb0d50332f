//! A CPU that counts what it is asked for.

use core::fmt;
use mtrr_pat::atomic::Word;
use mtrr_pat::cpu::{CpuOps, CpuidWords, MsrFault};
use mtrr_pat::regs::MsrAddr;

#[derive(Default)]
pub struct Counts {
    rdmsr: u32,
    wrmsr: u32,
    wbinvd: u32,
    cr0: u32,
    cr3: u32,
    cr4: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rdmsr,
            wrmsr,
            wbinvd,
            cr0,
            cr3,
            cr4,
        } = self;
        write!(
            f,
            "rdmsr={rdmsr} wrmsr={wrmsr} wbinvd={wbinvd} cr0={cr0} cr3={cr3} cr4={cr4}"
        )
    }
}

pub struct Counting<'a, C> {
    cpu: &'a mut C,
    pub counts: Counts,
}

impl<'a, C> Counting<'a, C> {
    pub fn new(cpu: &'a mut C) -> Self {
        Self {
            cpu,
            counts: Counts::default(),
        }
    }
}

// SAFETY: each method is the other CPU's of the same name.
unsafe impl<C: CpuOps> CpuOps for Counting<'_, C> {
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault> {
        self.counts.rdmsr += 1;
        self.cpu.rdmsr(msr)
    }
    unsafe fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
        self.counts.wrmsr += 1;
        // SAFETY: the caller\'s promise.
        unsafe { self.cpu.wrmsr(msr, value) }
    }
    fn read_cr0(&mut self) -> u64 {
        self.cpu.read_cr0()
    }
    unsafe fn write_cr0(&mut self, value: u64) {
        self.counts.cr0 += 1;
        // SAFETY: the caller\'s promise.
        unsafe { self.cpu.write_cr0(value) };
    }
    fn read_cr3(&mut self) -> u64 {
        self.cpu.read_cr3()
    }
    unsafe fn write_cr3(&mut self, value: u64) {
        self.counts.cr3 += 1;
        // SAFETY: the caller\'s promise.
        unsafe { self.cpu.write_cr3(value) };
    }
    fn read_cr4(&mut self) -> u64 {
        self.cpu.read_cr4()
    }
    unsafe fn write_cr4(&mut self, value: u64) {
        self.counts.cr4 += 1;
        // SAFETY: the caller\'s promise.
        unsafe { self.cpu.write_cr4(value) };
    }
    fn wbinvd(&mut self) {
        self.counts.wbinvd += 1;
        self.cpu.wbinvd();
    }
    fn mfence(&mut self) {
        self.cpu.mfence();
    }
    fn interrupts_enabled(&mut self) -> bool {
        self.cpu.interrupts_enabled()
    }
    fn cli(&mut self) {
        self.cpu.cli();
    }
    fn sti(&mut self) {
        self.cpu.sti();
    }
    fn pause_while(&mut self, word: &Word, seen: u32, deadline: u64) {
        self.cpu.pause_while(word, seen, deadline);
    }
    fn rdtsc(&mut self) -> u64 {
        self.cpu.rdtsc()
    }
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidWords {
        self.cpu.cpuid(leaf, subleaf)
    }
}

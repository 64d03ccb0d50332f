//! A simulated CPU with registers that behave otherwise.

use mtrr_pat::atomic::Word;
use mtrr_pat::cpu::{CpuOps, CpuidWords, MsrFault};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::SimCpu;

/// A simulated CPU whose registers are read and written by these.
pub struct Wrapped<'a, 'run, R, W> {
    pub cpu: &'a mut SimCpu<'run>,
    pub read: R,
    pub write: W,
}

unsafe impl<'run, R, W> CpuOps for Wrapped<'_, 'run, R, W>
where
    R: FnMut(&mut SimCpu<'run>, MsrAddr) -> Result<u64, MsrFault>,
    W: FnMut(&mut SimCpu<'run>, MsrAddr, u64) -> Result<(), MsrFault>,
{
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault> {
        (self.read)(self.cpu, msr)
    }
    unsafe fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
        (self.write)(self.cpu, msr, value)
    }
    fn read_cr0(&mut self) -> u64 {
        self.cpu.read_cr0()
    }
    unsafe fn write_cr0(&mut self, value: u64) {
        unsafe { self.cpu.write_cr0(value) };
    }
    fn read_cr3(&mut self) -> u64 {
        self.cpu.read_cr3()
    }
    unsafe fn write_cr3(&mut self, value: u64) {
        unsafe { self.cpu.write_cr3(value) };
    }
    fn read_cr4(&mut self) -> u64 {
        self.cpu.read_cr4()
    }
    unsafe fn write_cr4(&mut self, value: u64) {
        unsafe { self.cpu.write_cr4(value) };
    }
    fn wbinvd(&mut self) {
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

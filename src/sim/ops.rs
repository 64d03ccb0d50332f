//! The privileged instructions of a simulated CPU.

use std::panic::Location;

use super::cpu::SimCpu;
use super::fault::At;
use super::log::Op;
use super::tlb::pcid;
use crate::atomic::{Touch, Word};
use crate::cpu::{CR0_CD, CR0_NW, CR4_PCIDE, CR4_PGE, CpuOps, CpuidWords, MsrFault};
use crate::regs::MsrAddr;

// SAFETY: what it executes on is the simulated processor whose thread it is; no real one.
unsafe impl CpuOps for SimCpu<'_> {
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault> {
        let number = self.number;
        let mut state = self.begin();
        state.check_sibling(number, "RDMSR");
        state.check_announced(number, "RDMSR", msr);
        let this = &state.cpus[number];
        let found = match this.regs.register(msr) {
            Ok(_) if state.access_faults(number, msr) => Err(MsrFault),
            Ok(register) => Ok(this.regs.read(&state.sets[this.set], register)),
            Err(fault) => Err(fault),
        };
        state.record(
            number,
            found.map_or(Op::RdmsrFault(msr.0), |value| Op::Rdmsr(msr.0, value)),
        );
        let cost = state.config.costs.rdmsr;
        state.charge(number, cost);
        found
    }

    unsafe fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
        let number = self.number;
        let k = {
            let state = self.begin();
            state.cpus[number].life.wrmsr + 1
        };
        for at in [At::Wrmsr(k), At::EveryWrmsr, At::Msr(msr)] {
            self.strike(at);
        }
        let mut state = self.shared.enter(number);
        state.cpus[number].life.wrmsr = k;
        state.check_sibling(number, "WRMSR");
        state.check_announced(number, "WRMSR", msr);
        let outcome = state.wrmsr(number, msr, value, k);
        let cost = state.config.costs.wrmsr;
        state.charge(number, cost);
        outcome
    }

    fn read_cr0(&mut self) -> u64 {
        let number = self.number;
        let mut state = self.begin();
        let value = state.cpus[number].regs.cr0;
        state.record(number, Op::ReadCr0(value));
        let cost = state.config.costs.cr_read;
        state.charge(number, cost);
        value
    }

    unsafe fn write_cr0(&mut self, value: u64) {
        let number = self.number;
        let before = self.begin().cpus[number].regs.cr0;
        let clears = before & !value & CR0_CD != 0;
        if value & (CR0_CD | CR0_NW) == CR0_CD {
            let k = {
                let life = &mut self.shared.lock().cpus[number].life;
                life.entries += 1;
                life.entries
            };
            self.strike(At::WindowEntry(k));
        }
        let mut state = self.shared.enter(number);
        let exits = clears && state.cpus[number].in_window;
        if let Err(text) = state.write_cr0(number, value) {
            drop(state);
            panic!("CPU {number}: {text}");
        }
        let cost = state.config.costs.cr_write;
        state.charge(number, cost);
        if exits {
            state.cpus[number].life.exits += 1;
            let k = state.cpus[number].life.exits;
            drop(state);
            self.strike(At::WindowExit(k));
        }
    }

    fn read_cr3(&mut self) -> u64 {
        let number = self.number;
        let mut state = self.begin();
        let value = state.cpus[number].regs.cr3;
        state.record(number, Op::ReadCr3(value));
        let cost = state.config.costs.cr_read;
        state.charge(number, cost);
        value
    }

    unsafe fn write_cr3(&mut self, value: u64) {
        const NO_FLUSH: u64 = 1 << 63;
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Cr3(value));
        let regs = &mut state.cpus[number].regs;
        let keeps = value & NO_FLUSH != 0 && regs.cr4 & CR4_PCIDE != 0;
        regs.cr3 = value & !NO_FLUSH;
        let space = pcid(regs.cr3, regs.cr4);
        let cost = state.config.costs.cr_write;
        state.charge(number, cost);
        if !keeps {
            Self::flush(&mut state, number, Some(space));
        }
    }

    fn read_cr4(&mut self) -> u64 {
        let number = self.number;
        let mut state = self.begin();
        let value = state.cpus[number].regs.cr4;
        state.record(number, Op::ReadCr4(value));
        let cost = state.config.costs.cr_read;
        state.charge(number, cost);
        value
    }

    unsafe fn write_cr4(&mut self, value: u64) {
        const PAE: u64 = 1 << 5;
        const PSE: u64 = 1 << 4;
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Cr4(value));
        let before = state.cpus[number].regs.cr4;
        state.cpus[number].regs.cr4 = value;
        let cost = state.config.costs.cr_write;
        state.charge(number, cost);
        let toggled = (before ^ value) & (CR4_PGE | PAE | PSE);
        if toggled | (before & !value & CR4_PCIDE) != 0 {
            Self::flush(&mut state, number, None);
        }
    }

    fn wbinvd(&mut self) {
        let number = self.number;
        let mut state = self.begin();
        state.check_sibling(number, "WBINVD");
        state.record(number, Op::Wbinvd);
        state.charge(number, 0);
        state.write_back(number);
    }

    fn mfence(&mut self) {
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Mfence);
        let cost = state.config.costs.mfence;
        state.charge(number, cost);
        drop(state);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn interrupts_enabled(&mut self) -> bool {
        let number = self.number;
        let mut state = self.begin();
        let set = state.cpus[number].regs.interrupts;
        state.record(number, Op::ReadIf(set));
        state.charge(number, 0);
        set
    }

    fn cli(&mut self) {
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Cli);
        state.cpus[number].regs.interrupts = false;
        state.charge(number, 0);
    }

    fn sti(&mut self) {
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Sti);
        state.cpus[number].regs.interrupts = true;
        state.charge(number, 0);
    }

    #[track_caller]
    fn pause_while(&mut self, word: &Word, seen: u32, deadline: u64) {
        let place = Location::caller();
        self.take_interrupts();
        let mut state = self.shared.enter(self.number);
        if std::thread::panicking() {
            return;
        }
        state.record(self.number, Op::Pause);
        state.check_touch(self.number, Touch::Load);
        let deadline = state.deadline(self.number, deadline);
        self.shared
            .wait_word(state, self.number, (word, seen), deadline, place);
        self.take_interrupts();
    }

    fn rdtsc(&mut self) -> u64 {
        let number = self.number;
        let mut state = self.begin();
        state.record(number, Op::Rdtsc);
        state.charge(number, 0);
        state.tsc(number)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidWords {
        let mut state = self.shared.enter(self.number);
        state.record(self.number, Op::Cpuid(leaf, subleaf));
        let cost = state.config.costs.cpuid;
        state.charge(self.number, cost);
        super::cpuid::answer(&state, self.number, leaf, subleaf)
    }
}

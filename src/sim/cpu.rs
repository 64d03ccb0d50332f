//! One simulated CPU: its instructions.

use std::panic::Location;
use std::sync::Arc;

use super::check::Rule;
use super::config::Schedule;
use super::fault::{At, What};
use super::log::Op;
use super::machine::{Machine, Spawn};
use super::registers::Register;
use super::sched::{Guard, Shared};
use super::state::State;
use super::types::pcid;
use crate::atomic::Word;
use crate::cpu::{CR0_CD, CR0_NW, CR4_PCIDE, CR4_PGE, CpuOps, CpuidWords, MsrFault};
use crate::regs::{MsrAddr, VariableMtrr};

/// The simulated CPU the calling thread is. Handed to the closures of [`Machine::run`].
pub struct SimCpu<'run> {
    pub(super) shared: &'run Arc<Shared>,
    pub(super) number: usize,
    pub(super) spawner: &'run dyn Spawn,
}

impl core::fmt::Debug for SimCpu<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SimCpu({})", self.number)
    }
}

impl SimCpu<'_> {
    /// This CPU's number.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The machine this CPU is part of, to look at.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::from_shared(self.shared)
    }

    /// Begins an instruction: waits for this CPU's turn, takes interrupts and faults that are due.
    pub(super) fn begin(&mut self) -> Guard<'_> {
        let mut state = self.shared.enter(self.number);
        if std::thread::panicking() {
            return state;
        }
        let (ops, window_ops) = state.count_op(self.number);
        drop(state);
        self.strike(At::Op(ops));
        if let Some(k) = window_ops {
            self.strike(At::InWindow(k));
        }
        self.take_interrupts();
        state = self.shared.enter(self.number);
        let (_, refill) = {
            let code = state.config.code;
            state.translate(self.number, code)
        };
        state.spend(self.number, refill);
        state
    }

    /// Runs the interrupt handler while an interrupt is pending and RFLAGS.IF is set.
    pub(super) fn take_interrupts(&mut self) {
        loop {
            let mut state = self.shared.enter(self.number);
            let this = &mut state.cpus[self.number];
            if !(this.pending && this.regs.interrupts) {
                return;
            }
            this.pending = false;
            this.regs.interrupts = false;
            state.record(self.number, Op::Interrupt);
            state.charge(self.number, 0);
            drop(state);
            self.spawner.interrupt(self);
            let mut state = self.shared.enter(self.number);
            state.cpus[self.number].regs.interrupts = true;
            state.record(self.number, Op::Iret);
        }
    }

    /// Lets the faults of this point happen.
    pub(super) fn strike(&mut self, at: At) {
        if !self.shared.faulty {
            return;
        }
        let config = Arc::clone(&self.shared.lock().config);
        for fault in &config.faults {
            if fault.cpu != self.number || fault.at != at {
                continue;
            }
            let mut state = self.shared.lock();
            if fault.round.is_some_and(|round| round != state.round) {
                continue;
            }
            match &fault.what {
                What::Stuck => self.shared.stuck(state, self.number),
                What::Delay(time) => state.spend_exactly(self.number, *time),
                What::Smm(scribble) => {
                    state.record(self.number, Op::Smm);
                    state.smm(self.number, scribble);
                }
                What::Interrupt => state.cpus[self.number].pending = true,
                What::Gp | What::Ignored => {}
            }
        }
    }

    fn flush(state: &mut State, cpu: usize, space: Option<u64>) {
        match space {
            None => state.cpus[cpu].tlb.flush_all(),
            Some(pcid) => state.cpus[cpu].tlb.flush_space(pcid),
        }
        let code = state.config.code;
        let (_, refill) = state.translate(cpu, code);
        state.spend(cpu, refill);
    }
}

impl CpuOps for SimCpu<'_> {
    fn rdmsr(&mut self, msr: MsrAddr) -> Result<u64, MsrFault> {
        let number = self.number;
        let mut state = self.begin();
        state.check_sibling(number, "RDMSR");
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

    fn wrmsr(&mut self, msr: MsrAddr, value: u64) -> Result<(), MsrFault> {
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

    fn write_cr0(&mut self, value: u64) {
        let number = self.number;
        let before = self.begin().cpus[number].regs.cr0;
        let (sets, clears) = (value & !before & CR0_CD != 0, before & !value & CR0_CD != 0);
        if sets {
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

    fn write_cr3(&mut self, value: u64) {
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

    fn write_cr4(&mut self, value: u64) {
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

    fn clflush(&mut self, _address: *const u8) {
        let number = self.number;
        let mut state = self.begin();
        // Not checked against a sibling's window: a wait loop drops its copy of the line it waits on.
        state.record(number, Op::Clflush);
        let cost = state.config.costs.clflush;
        state.charge(number, cost);
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

impl State {
    /// Counts a privileged instruction: its number in this life, and in this window.
    fn count_op(&mut self, cpu: usize) -> (u64, Option<u64>) {
        let this = &mut self.cpus[cpu];
        this.life.ops += 1;
        if this.in_window {
            this.life.window_ops += 1;
        }
        let in_window = this.in_window.then_some(this.life.window_ops);
        (this.life.ops, in_window)
    }

    fn has_fault(&self, cpu: usize, at: At, what: fn(&What) -> bool) -> bool {
        self.config.faults.iter().any(|fault| {
            fault.cpu == cpu
                && fault.at == at
                && what(&fault.what)
                && fault.round.is_none_or(|round| round == self.round)
        })
    }

    fn access_faults(&self, cpu: usize, msr: MsrAddr) -> bool {
        self.has_fault(cpu, At::Msr(msr), |what| matches!(what, What::Gp))
    }

    fn wrmsr(&mut self, cpu: usize, msr: MsrAddr, value: u64, k: u64) -> Result<(), MsrFault> {
        let points = [At::Wrmsr(k), At::EveryWrmsr, At::Msr(msr)];
        let gp = points
            .iter()
            .any(|at| self.has_fault(cpu, *at, |what| matches!(what, What::Gp)));
        let register = match self.cpus[cpu].regs.register(msr) {
            Ok(register) if !gp && self.cpus[cpu].regs.accepts(register, value) => register,
            _ => {
                self.record(cpu, Op::WrmsrFault(msr.0, value));
                return Err(MsrFault);
            }
        };
        let ignored = points
            .iter()
            .any(|at| self.has_fault(cpu, *at, |what| matches!(what, What::Ignored)));
        if register.is_mtrr() {
            self.check_mtrr_write(cpu, register, value);
        }
        if ignored {
            self.record(cpu, Op::WrmsrIgnored(msr.0, value));
            return Ok(());
        }
        self.record(cpu, Op::Wrmsr(msr.0, value));
        let set = self.cpus[cpu].set;
        let mut mtrrs = self.sets[set];
        self.cpus[cpu].regs.write(&mut mtrrs, register, value);
        self.sets[set] = mtrrs;
        let core = self.cpus[cpu].core;
        self.refresh(core);
        Ok(())
    }

    /// The window rule, and where windows begin.
    fn check_mtrr_write(&mut self, cpu: usize, register: Register, value: u64) {
        let this = &self.cpus[cpu];
        let set = &self.sets[this.set];
        let unused = match register {
            Register::Base(n) => !set.variable[n].valid(),
            Register::Mask(n) => !set.variable[n].valid() && value & VariableMtrr::V == 0,
            _ => false,
        };
        let same = this.regs.read(set, register) == value;
        let caching_off = this.regs.cache_disabled();
        let enabled = set.enabled();
        let allowed = caching_off && (!enabled || register == Register::DefType);
        if same {
            self.cpus[cpu].counters.same_value_writes += 1;
        }
        if caching_off {
            let this = &mut self.cpus[cpu];
            this.owns_cd = true;
            this.reset_cd = false;
            if !this.in_window {
                this.in_window = true;
                this.life.window_ops = 0;
                this.counters.windows += 1;
            }
            self.check_siblings_hold(cpu);
        }
        if !(same || unused || allowed) {
            let text = format!("{register:?} := {value:#x} with E={enabled}, CD={caching_off}");
            self.violate(cpu, Rule::MtrrWriteOutsideWindow, text);
        }
    }

    fn write_cr0(&mut self, cpu: usize, value: u64) -> Result<(), String> {
        if value & (CR0_CD | CR0_NW) == CR0_NW {
            return Err(format!("#GP: MOV CR0, {value:#x} with CD=0 and NW=1"));
        }
        if value & CR0_CD != 0 && self.config.cd_faults {
            return Err(format!(
                "MOV CR0, {value:#x} sets CD, which this guest may not"
            ));
        }
        self.record(cpu, Op::Cr0(value));
        let this = &mut self.cpus[cpu];
        let before = this.regs.cr0;
        this.regs.cr0 = value;
        if value & CR0_CD == 0 {
            this.owns_cd = false;
            this.in_window = false;
            this.reset_cd = false;
        } else if before & CR0_CD == 0 || before & CR0_NW != value & CR0_NW {
            this.owns_cd = true;
            this.reset_cd = false;
            self.check_siblings_hold(cpu);
        }
        let core = self.cpus[cpu].core;
        self.refresh(core);
        Ok(())
    }

    /// When caching goes off under a sibling that is in the middle of kernel work.
    fn check_siblings_hold(&mut self, cpu: usize) {
        let now = self.cpus[cpu].time;
        let core = self.cpus[cpu].core;
        for n in self.threads_of(core) {
            let other = &self.cpus[n];
            let busy = other.working && other.time > now;
            if n != cpu && other.runs() && busy {
                let text = format!("does {:?} while CPU {cpu} has caching off", other.last);
                self.violate(n, Rule::SiblingRan, text);
                self.cpus[n].working = false;
            }
        }
    }

    /// The rule for a thread whose sibling has caching off: wait and flush, nothing else.
    pub(super) fn check_sibling(&mut self, cpu: usize, what: &str) {
        let core = self.cpus[cpu].core;
        let owner = self
            .threads_of(core)
            .find(|&n| n != cpu && self.cpus[n].owns_cd);
        if let Some(owner) = owner {
            self.violate(
                cpu,
                Rule::SiblingRan,
                format!("{what} while CPU {owner} has caching off"),
            );
        }
    }

    /// This CPU's time-stamp counter: nanoseconds, off by an amount of its own.
    pub(super) fn tsc(&self, cpu: usize) -> u64 {
        self.cpus[cpu].time / 1000 + tsc_offset(cpu)
    }

    /// The virtual time a time-stamp stands for; `None` for never.
    fn deadline(&self, cpu: usize, tsc: u64) -> Option<u64> {
        let ns = tsc.saturating_sub(tsc_offset(cpu));
        ns.checked_mul(1000)
    }

    /// Lets exactly this much time pass.
    pub(super) fn spend_exactly(&mut self, cpu: usize, time: u64) {
        if matches!(self.config.schedule, Schedule::Baton { .. }) {
            self.cpus[cpu].time += time;
        }
    }
}

const fn tsc_offset(cpu: usize) -> u64 {
    cpu as u64 * 1_000_003
}

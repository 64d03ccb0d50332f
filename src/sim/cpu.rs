//! One simulated CPU: whose turn it is, interrupts, faults.

use std::sync::Arc;
use std::thread::Thread;

use super::fault::{At, What};
use super::log::Op;
use super::machine::Machine;
use super::sched::{Guard, Shared};
use super::state::State;

/// What a CPU needs of the run it belongs to.
pub(super) trait Spawn {
    /// Starts the thread of an AP.
    fn start(&self, cpu: usize) -> Thread;
    /// Runs the interrupt handler.
    fn interrupt(&self, cpu: &mut SimCpu<'_>);
}

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
                What::Delay(time) => drop(self.shared.lose(state, self.number, *time)),
                What::Smm(scribble) => {
                    state.record(self.number, Op::Smm);
                    state.smm(self.number, scribble);
                }
                What::Interrupt => state.cpus[self.number].pending = true,
                What::Gp | What::Ignored => {}
            }
        }
    }

    pub(super) fn flush(state: &mut State, cpu: usize, space: Option<u64>) {
        match space {
            None => state.cpus[cpu].tlb.flush_all(),
            Some(pcid) => state.cpus[cpu].tlb.flush_space(pcid),
        }
        let code = state.config.code;
        let (_, refill) = state.translate(cpu, code);
        state.spend(cpu, refill);
    }
}

//! The machine as a test sees it: build, run, look, judge.

use std::sync::Arc;

use super::check::{Violation, Violations};
use super::config::Config;
use super::counters::Counters;
use super::log::{Event, Op, Span};
use super::sched::Shared;
use super::scribble::Scribble;
use crate::memtype::PatType;
use crate::regs::MsrAddr;
use crate::snapshot::Snapshot;

/// A simulated machine. Clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) shared: Arc<Shared>,
}

impl Machine {
    /// A machine at power-on: firmware has run, the boot CPU is in kernel code with interrupts
    /// enabled, the APs wait for a SIPI.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            shared: Arc::new(Shared::new(&Arc::new(config))),
        }
    }

    pub(super) fn from_shared(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
        }
    }

    /// The description it was built from.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.shared.lock().config)
    }

    /// A CPU's registers as stored, RdMem and WrMem included.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn registers(&self, cpu: usize) -> Snapshot {
        self.shared.lock().snapshot(cpu)
    }

    /// Replaces a CPU's memory-type registers (and so those of whoever shares them).
    ///
    /// # Panics
    /// When there is no such CPU.
    pub fn set_registers(&self, cpu: usize, snapshot: &Snapshot) {
        let rewrite = *snapshot;
        let scribble = Scribble::custom(move |_, registers| *registers = rewrite);
        self.shared.lock().smm(cpu, &scribble);
    }

    /// Replaces what a CPU's further MSR holds ([`Config::other_msrs`]), without that CPU's doing.
    ///
    /// # Panics
    /// When there is no such CPU.
    pub fn set_msr(&self, cpu: usize, msr: MsrAddr, value: u64) {
        let scribble = Scribble::Kept.with_msr(msr, value);
        self.shared.lock().smm(cpu, &scribble);
    }

    /// CR0, CR3 and CR4 of a CPU.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn control_registers(&self, cpu: usize) -> (u64, u64, u64) {
        let regs = &self.shared.lock().cpus[cpu].regs;
        (regs.cr0, regs.cr3, regs.cr4)
    }

    /// The event list so far, in the order the operations took effect.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.shared.lock().events.clone()
    }

    /// What one CPU did, in order.
    #[must_use]
    pub fn ops(&self, cpu: usize) -> Vec<Op> {
        let state = self.shared.lock();
        let events = state.events.iter();
        events
            .filter(|event| event.cpu == cpu)
            .map(|event| event.op)
            .collect()
    }

    /// What one CPU wrote, in order: [`Self::ops`] without reads, waits and kernel work.
    #[must_use]
    pub fn writes(&self, cpu: usize) -> Vec<Op> {
        let mut ops = self.ops(cpu);
        ops.retain(|op| op.is_write());
        ops
    }

    /// What one CPU was doing from when to when, without gaps of activity, if
    /// [`Config::timeline`] is set.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn timeline(&self, cpu: usize) -> Vec<Span> {
        self.shared.lock().cpus[cpu].spans.clone()
    }

    /// Empties the event list, the violations and all counters: a phase of a test ends.
    pub fn clear_log(&self) {
        let mut state = self.shared.lock();
        state.events.clear();
        state.violations.clear();
        for cpu in &mut state.cpus {
            cpu.counters = Counters::default();
            cpu.spans.clear();
        }
    }

    /// One CPU's counters.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn counters(&self, cpu: usize) -> Counters {
        self.shared.lock().cpus[cpu].counters
    }

    /// The virtual time a CPU has reached, in picoseconds.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn time(&self, cpu: usize) -> u64 {
        self.shared.lock().cpus[cpu].time
    }

    /// The virtual time the last CPU has reached, in picoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        let state = self.shared.lock();
        state.cpus.iter().map(|cpu| cpu.time).max().unwrap_or(0)
    }

    /// How many scheduling points the last run took.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.shared.lock().steps
    }

    /// The pages a CPU holds in its TLB under a type its registers no longer give: address, type
    /// held, type now.
    ///
    /// # Panics
    /// When there is no such CPU.
    #[must_use]
    pub fn stale_entries(&self, cpu: usize) -> Vec<(u64, PatType, PatType)> {
        self.shared.lock().stale(cpu)
    }

    /// The rules broken so far.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.lock().violations.clone()
    }

    /// Whether every rule was kept so far. A boot CPU that firmware left with its MTRRs off, or a target
    /// that has them off, breaks one: a locked instruction with E clear.
    ///
    /// # Errors
    /// The rules that were broken, by whom and when.
    pub fn check(&self) -> Result<(), Violations> {
        let violations = self.violations();
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Violations(violations))
        }
    }
}

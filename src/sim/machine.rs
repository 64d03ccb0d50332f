//! The machine as a test sees it: build, run, look, judge.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{Builder, Scope, Thread};

use super::check::{Violation, Violations};
use super::config::Config;
use super::cpu::SimCpu;
use super::log::{Counters, Event, Op};
use super::sched::{Current, Shared};
use super::state::Status;
use crate::memtype::PatType;
use crate::snapshot::Snapshot;

/// Why a run ended without the boot CPU's code returning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Nobody could go on; who waits where.
    Deadlock(String),
    /// The boot CPU was told to stop for ever, and everybody else came to rest.
    BootStuck(String),
    /// The code of this CPU panicked.
    Panic(usize),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock(text) => write!(f, "deadlock: {text}"),
            Self::BootStuck(text) => write!(f, "the boot CPU is stuck: {text}"),
            Self::Panic(cpu) => write!(f, "the code of CPU {cpu} panicked"),
        }
    }
}

impl core::error::Error for Stop {}

/// A simulated machine. Clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine {
    shared: Arc<Shared>,
}

/// What a CPU needs of the run it belongs to.
pub(super) trait Spawn {
    /// Starts the thread of an AP.
    fn start(&self, cpu: usize) -> Thread;
    /// Runs the interrupt handler.
    fn interrupt(&self, cpu: &mut SimCpu<'_>);
}

type Code<'env> = dyn Fn(&mut SimCpu<'_>) + Sync + 'env;

/// One run: the closures, and where threads are spawned.
#[derive(Clone, Copy)]
struct Run<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Arc<Shared>,
    ap: &'env Code<'env>,
    handler: &'env Code<'env>,
}

impl Spawn for Run<'_, '_> {
    fn start(&self, cpu: usize) -> Thread {
        let run = *self;
        let spawned = Builder::new()
            .name(format!("cpu{cpu}"))
            .stack_size(1 << 20)
            .spawn_scoped(run.scope, move || run.ap_thread(cpu));
        match spawned {
            Ok(handle) => handle.thread().clone(),
            Err(error) => panic!("no thread for CPU {cpu}: {error}"),
        }
    }

    fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        (self.handler)(cpu);
    }
}

impl Run<'_, '_> {
    fn ap_thread(&self, number: usize) {
        let _current = Current::set(self.shared, number);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            self.shared.await_baton(number);
            let mut cpu = SimCpu {
                shared: self.shared,
                number,
                spawner: self,
            };
            cpu.start();
            (self.ap)(&mut cpu);
            cpu.end();
        }));
        self.shared.finish(number, &ended);
    }
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

    /// Runs the boot CPU's code to its end. APs run `ap` from each SIPI on; every CPU runs
    /// `handler` when an interrupt reaches it with interrupts enabled. Returns when all threads
    /// have ended: halted APs are told that nothing more will come, stuck ones are given up.
    ///
    /// # Panics
    /// With the panic of the code of any CPU, and when nobody can go on: see [`Self::try_run`].
    pub fn run<R>(
        &self,
        boot: impl FnOnce(&mut SimCpu<'_>) -> R,
        ap: impl Fn(&mut SimCpu<'_>) + Sync,
        handler: impl Fn(&mut SimCpu<'_>) + Sync,
    ) -> R {
        match self.try_run(boot, ap, handler) {
            Ok(result) => result,
            Err(stop) => panic!("{stop}"),
        }
    }

    /// The same, with the end of the run as a value.
    ///
    /// # Errors
    /// [`Stop`] when nobody could go on, or code of an AP panicked.
    ///
    /// # Panics
    /// With the panic of the boot CPU's code, and when the machine is already running.
    pub fn try_run<R>(
        &self,
        boot: impl FnOnce(&mut SimCpu<'_>) -> R,
        ap: impl Fn(&mut SimCpu<'_>) + Sync,
        handler: impl Fn(&mut SimCpu<'_>) + Sync,
    ) -> Result<R, Stop> {
        self.power_on();
        let (shared, ap, handler): (_, &Code<'_>, &Code<'_>) = (&self.shared, &ap, &handler);
        let result = std::thread::scope(|scope| {
            let run = Run {
                scope,
                shared,
                ap,
                handler,
            };
            let _current = Current::set(shared, 0);
            let mut cpu = SimCpu {
                shared,
                number: 0,
                spawner: &run,
            };
            let result = catch_unwind(AssertUnwindSafe(|| boot(&mut cpu)));
            let (result, ended) = match result {
                Ok(result) => (Some(result), Ok(())),
                Err(payload) => (None, Err(payload)),
            };
            shared.finish(0, &ended);
            (result, ended)
        });
        let stop = shared.lock().stop.take();
        match (stop, result) {
            (Some(Stop::Panic(0)), (_, Err(payload))) => resume_unwind(payload),
            (Some(stop), _) => Err(stop),
            (None, (Some(result), _)) => Ok(result),
            (None, (None, _)) => Err(Stop::Panic(0)),
        }
    }

    fn power_on(&self) {
        let mut state = self.shared.lock();
        assert!(
            state.cpus.iter().all(|cpu| cpu.status == Status::Off),
            "the machine is already running"
        );
        state.stopping = false;
        state.stop = None;
        state.queue.clear();
        state.waiters.clear();
        state.cpus[0].status = Status::Ready;
        state.cpus[0].handle = Some(std::thread::current());
        for core in 0..state.config.cores {
            state.refresh(core);
        }
        self.shared.begin_run();
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
        let scribble = super::firmware::Scribble::custom(move |_, registers| *registers = rewrite);
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

    /// Empties the event list, the violations and all counters: a phase of a test ends.
    pub fn clear_log(&self) {
        let mut state = self.shared.lock();
        state.events.clear();
        state.violations.clear();
        for cpu in &mut state.cpus {
            cpu.counters = Counters::default();
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

    /// Whether every rule was kept so far.
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

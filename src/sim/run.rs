//! One run of a machine: its threads, from power-on to the end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{Builder, Scope, Thread};

use super::cpu::{SimCpu, Spawn};
use super::machine::Machine;
use super::sched::Shared;
use super::state::Status;
use super::stop::Stop;
use super::touch::Current;

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
        let _current = Current::set(self.shared, number, self);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            self.shared.await_start(number);
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
            let _current = Current::set(shared, 0, &run);
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
        state.steps = 0;
        state.queue.clear();
        state.waiters.clear();
        state.cpus[0].status = Status::Ready;
        state.cpus[0].handle = Some(std::thread::current());
        for core in 0..state.config.cores {
            state.refresh(core);
        }
        self.shared.begin_run();
    }
}

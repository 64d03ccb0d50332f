//! Who runs: the baton, sleepers, and what is said when nobody can run any more.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use super::config::{Config, Schedule};
use super::log::Activity;
use super::state::{State, Status};
use super::stop::Stop;

/// The payload with which a CPU's thread is unwound when its CPU is reset or the machine stops.
pub(crate) struct Killed;

/// The machine, locked.
pub(crate) type Guard<'a> = MutexGuard<'a, State>;

/// The machine and what its threads meet at.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The CPU that runs (deterministic schedule only).
    baton: AtomicUsize,
    /// CPUs whose threads must end.
    pub(super) kill: Vec<AtomicBool>,
    /// Signalled when a thread ended.
    ended: Condvar,
    pub(super) free: bool,
    /// Whether any fault is configured.
    pub(crate) faulty: bool,
}

impl Shared {
    pub(crate) fn new(config: &Arc<Config>) -> Self {
        Self {
            state: Mutex::new(State::new(Arc::clone(config))),
            baton: AtomicUsize::new(0),
            kill: (0..config.cpus()).map(|_| AtomicBool::new(false)).collect(),
            ended: Condvar::new(),
            free: matches!(config.schedule, Schedule::Free { .. }),
            faulty: !config.faults.is_empty(),
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin_run(&self) {
        self.baton.store(0, Ordering::Release);
        for kill in &self.kill {
            kill.store(false, Ordering::Release);
        }
    }

    /// A scheduling point: returns when it is `cpu`'s turn, with the machine locked.
    pub(crate) fn enter(&self, cpu: usize) -> Guard<'_> {
        let mut state = self.lock();
        if std::thread::panicking() {
            return state;
        }
        if self.killed(cpu) {
            drop(state);
            resume_unwind(Box::new(Killed));
        }
        state.steps += 1;
        if state.steps > state.config.max_steps && state.stop.is_none() {
            let report = state.who_waits();
            self.stop_all(&mut state, Stop::Endless(report));
            drop(state);
            resume_unwind(Box::new(Killed));
        }
        if self.free {
            state = self.enter_free(state, cpu);
        } else {
            let key = (state.cpus[cpu].time, cpu);
            let due = (key.0.saturating_sub(state.config.quantum), cpu);
            if state.queue.first().is_some_and(|first| *first < due) {
                state.enqueue(cpu, key.0);
                state = self.hand_over(state, cpu);
            }
        }
        state.cpus[cpu].wait = None;
        state
    }

    /// Passes the baton to whoever is next, and sleeps until it comes back.
    pub(super) fn hand_over<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> Guard<'a> {
        let next = match state.dequeue() {
            Some(next) if next == cpu => return state,
            Some(next) => state.cpus[next].handle.clone().map(|thread| (next, thread)),
            None => {
                self.nobody(&mut state);
                None
            }
        };
        // Unlocked first, so that the other thread does not wake only to wait for the lock.
        drop(state);
        if let Some((next, thread)) = next {
            self.pass(next, &thread);
        }
        self.await_baton(cpu);
        self.lock()
    }

    fn pass(&self, next: usize, thread: &Thread) {
        self.baton.store(next, Ordering::Release);
        thread.unpark();
    }

    /// Sleeps until somebody, or the time, makes this CPU go on; unwinds if it is killed instead.
    pub(super) fn sleep<'a>(&'a self, state: Guard<'a>, cpu: usize) -> Guard<'a> {
        if self.free {
            self.sleep_free(state, cpu)
        } else {
            self.hand_over(state, cpu)
        }
    }

    /// Waits for a new CPU's first turn.
    pub(super) fn await_start(&self, cpu: usize) {
        if self.free {
            drop(self.sleep_free(self.lock(), cpu));
        } else {
            self.await_baton(cpu);
        }
    }

    /// Sleeps until this CPU has the baton; unwinds if it is killed instead.
    fn await_baton(&self, cpu: usize) {
        loop {
            self.end_if_killed(cpu);
            if self.baton.load(Ordering::Acquire) == cpu {
                return;
            }
            std::thread::park();
        }
    }

    /// Whether this CPU was reset or the machine stops.
    fn killed(&self, cpu: usize) -> bool {
        self.kill[cpu].load(Ordering::Acquire)
    }

    pub(super) fn end_if_killed(&self, cpu: usize) {
        if self.killed(cpu) {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Ends a CPU's thread: passes the baton on, or stops the machine.
    pub(crate) fn finish(&self, cpu: usize, ended: &std::thread::Result<()>) {
        let mut state = self.lock();
        let killed = match ended {
            Ok(()) => false,
            Err(payload) => payload.is::<Killed>(),
        };
        state.leave_queue(cpu);
        state.cpus[cpu].status = Status::Off;
        state.cpus[cpu].handle = None;
        let core = state.cpus[cpu].core;
        state.refresh(core);
        if ended.is_err() && !killed {
            self.stop_all(&mut state, Stop::Panic(cpu));
        } else if cpu == 0 {
            state.stopping = true;
            self.wind_down(&mut state);
        }
        if self.free {
            state.stored(cpu);
        }
        // One that got stuck after the boot CPU returned ends by itself, and passes the baton on.
        let from_outside = killed && self.killed(cpu);
        if !from_outside && state.stop.is_none() {
            self.go_on(&mut state);
        }
        self.ended.notify_all();
    }

    /// A CPU ended: lets the next one run.
    fn go_on(&self, state: &mut State) {
        if self.free {
            self.move_on(state);
            return;
        }
        match state.dequeue() {
            Some(next) => {
                if let Some(thread) = &state.cpus[next].handle {
                    self.pass(next, thread);
                }
            }
            None => self.nobody(state),
        }
    }

    /// The boot CPU returned: halted CPUs go on, stuck ones end.
    fn wind_down(&self, state: &mut State) {
        for n in 0..state.cpus.len() {
            match state.cpus[n].status {
                Status::Halted => {
                    let at = state.cpus[0].time;
                    state.make_ready(n, at);
                }
                Status::Stuck => self.kill_thread(state, n),
                _ => {}
            }
        }
    }

    /// Nobody can run: the end of the run, or a deadlock.
    pub(super) fn nobody(&self, state: &mut State) {
        let waiting = state.cpus.iter().any(|cpu| cpu.status == Status::Waiting);
        if !waiting && state.stopping {
            return;
        }
        let report = state.who_waits();
        let stop = if !waiting && state.cpus[0].status == Status::Stuck {
            Stop::BootStuck(report)
        } else {
            Stop::Deadlock(report)
        };
        self.stop_all(state, stop);
    }

    pub(super) fn stop_all(&self, state: &mut State, why: Stop) {
        state.stopping = true;
        state.stop.get_or_insert(why);
        for n in 0..state.cpus.len() {
            self.kill_thread(state, n);
        }
    }

    fn kill_thread(&self, state: &State, n: usize) {
        self.kill[n].store(true, Ordering::Release);
        if let Some(thread) = &state.cpus[n].handle {
            thread.unpark();
        }
    }

    /// Ends the threads of CPUs from outside (INIT, S3) at a moment, and returns when they are
    /// gone.
    pub(crate) fn kill_and_wait<'a>(
        &'a self,
        mut state: Guard<'a>,
        cpus: &[usize],
        now: u64,
    ) -> Guard<'a> {
        for &n in cpus {
            if state.cpus[n].status != Status::Off {
                let since = state.cpus[n].time;
                if state.cpus[n].status == Status::Halted && since < now {
                    state.span(n, since, now, Activity::Halted);
                    state.cpus[n].time = now;
                }
                self.kill_thread(&state, n);
            }
        }
        while cpus.iter().any(|&n| state.cpus[n].status != Status::Off) {
            let woken = self.ended.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        for &n in cpus {
            self.kill[n].store(false, Ordering::Release);
        }
        state
    }
}

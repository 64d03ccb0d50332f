//! Who runs: the baton, sleepers, and what is said when nobody can run any more.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::config::{Config, Schedule};
use super::log::Activity;
use super::run::Stop;
use super::state::{State, Status};

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
    /// Signalled when a thread ended, an interrupt was sent, or the machine stops.
    pub(crate) changed: Condvar,
    pub(super) free: bool,
    /// Whether any fault is configured.
    pub(crate) faulty: bool,
    pub(super) limit: Duration,
    pub(super) started: Instant,
}

impl Shared {
    pub(crate) fn new(config: &Arc<Config>) -> Self {
        Self {
            state: Mutex::new(State::new(Arc::clone(config))),
            baton: AtomicUsize::new(0),
            kill: (0..config.cpus()).map(|_| AtomicBool::new(false)).collect(),
            changed: Condvar::new(),
            free: matches!(config.schedule, Schedule::Free { .. }),
            faulty: !config.faults.is_empty(),
            limit: Duration::from_millis(config.free_limit_ms),
            started: Instant::now(),
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
        if self.kill[cpu].load(Ordering::Acquire) {
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

    fn enter_free<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> Guard<'a> {
        if state.random != 0 && state.dice().is_multiple_of(16) {
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        let elapsed = self.started.elapsed();
        state.cpus[cpu].time = elapsed.as_nanos() as u64 * 1000;
        if elapsed > self.limit && state.stop.is_none() {
            let report = state.who_waits();
            self.stop_all(&mut state, Stop::Deadlock(report));
            drop(state);
            resume_unwind(Box::new(Killed));
        }
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

    /// Sleeps until this CPU has the baton; unwinds if it is killed instead.
    pub(crate) fn await_baton(&self, cpu: usize) {
        loop {
            if self.kill[cpu].load(Ordering::Acquire) {
                resume_unwind(Box::new(Killed));
            }
            if self.free || self.baton.load(Ordering::Acquire) == cpu {
                return;
            }
            std::thread::park();
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
        if !killed && !self.free && state.stop.is_none() {
            match state.dequeue() {
                Some(next) => {
                    if let Some(thread) = &state.cpus[next].handle {
                        self.pass(next, thread);
                    }
                }
                None => self.nobody(&mut state),
            }
        }
        self.changed.notify_all();
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
    fn nobody(&self, state: &mut State) {
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
        self.changed.notify_all();
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
        self.changed.notify_all();
        while cpus.iter().any(|&n| state.cpus[n].status != Status::Off) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        for &n in cpus {
            self.kill[n].store(false, Ordering::Release);
        }
        state
    }
}

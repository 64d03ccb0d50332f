//! Who runs: the baton, sleepers, and what is said when nobody can run any more.

use core::fmt::Write as _;
use std::cell::RefCell;
use std::panic::{Location, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::check::Rule;
use super::config::{Config, Schedule};
use super::log::Op;
use super::machine::Stop;
use super::state::{State, Status, Wait};
use crate::atomic::{Touch, Word};

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
    kill: Vec<AtomicBool>,
    /// Signalled when a thread ended, an interrupt was sent, or the machine stops.
    pub(crate) changed: Condvar,
    free: bool,
    /// Whether any fault is configured.
    pub(crate) faulty: bool,
    limit: Duration,
    started: Instant,
}

thread_local! {
    /// The machine and CPU this thread simulates.
    static CURRENT: RefCell<Option<(Arc<Shared>, usize)>> = const { RefCell::new(None) };
}

/// Makes this thread a CPU until dropped.
pub(crate) struct Current(Option<(Arc<Shared>, usize)>);

impl Current {
    pub(crate) fn set(shared: &Arc<Shared>, cpu: usize) -> Self {
        Self(CURRENT.with(|current| current.replace(Some((Arc::clone(shared), cpu)))))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let before = self.0.take();
        CURRENT.with(|current| *current.borrow_mut() = before);
    }
}

/// Told by every access of the crate's shared words, before it happens. Threads that are no
/// simulated CPU pass.
pub(crate) fn shared_touch(how: Touch, word: *const u8) {
    let current = CURRENT.with(|current| current.borrow().clone());
    if let Some((shared, cpu)) = current
        && !std::thread::panicking()
    {
        shared.touch(cpu, how, word.addr());
    }
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
        if self.free {
            state = self.enter_free(state, cpu);
        } else {
            let key = (state.cpus[cpu].time, cpu);
            if state.queue.first().is_some_and(|first| *first < key) {
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
    fn hand_over<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> Guard<'a> {
        match state.dequeue() {
            Some(next) if next == cpu => return state,
            Some(next) => self.pass(&state, next),
            None => self.nobody(&mut state),
        }
        drop(state);
        self.await_baton(cpu);
        self.lock()
    }

    fn pass(&self, state: &State, next: usize) {
        self.baton.store(next, Ordering::Release);
        if let Some(thread) = &state.cpus[next].handle {
            thread.unpark();
        }
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

    /// Sleeps until the word may have changed, or the deadline (picoseconds) has passed.
    pub(crate) fn wait_word(
        &self,
        mut state: Guard<'_>,
        cpu: usize,
        (word, seen): (&Word, u32),
        deadline: Option<u64>,
        place: &'static Location<'static>,
    ) {
        let since = state.cpus[cpu].time;
        let address = word.address().addr();
        state.cpus[cpu].wait = Some(Wait {
            word: address,
            seen,
            since,
            place,
        });
        if self.free {
            drop(state);
            std::thread::sleep(Duration::from_micros(20));
            return;
        }
        if word.peek() != seen || deadline.is_some_and(|deadline| deadline <= since) {
            let pause = state.config.costs.pause;
            state.charge(cpu, pause);
            return;
        }
        state.cpus[cpu].status = Status::Waiting;
        state.waiters.entry(address).or_default().push(cpu);
        if let Some(deadline) = deadline {
            state.enqueue(cpu, deadline);
        }
        let mut state = self.hand_over(state, cpu);
        let waited = state.cpus[cpu].time.saturating_sub(since);
        state.cpus[cpu].counters.waited += waited;
    }

    /// Sleeps in HLT until an interrupt is pending (`true`) or the machine stops (`false`).
    pub(crate) fn wait_interrupt<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> bool {
        let core = state.cpus[cpu].core;
        while !(state.cpus[cpu].pending && state.cpus[cpu].regs.interrupts) {
            if state.stopping {
                return false;
            }
            state.cpus[cpu].status = Status::Halted;
            state.refresh(core);
            if self.free {
                let (guard, _) = self
                    .changed
                    .wait_timeout(state, Duration::from_millis(10))
                    .unwrap_or_else(PoisonError::into_inner);
                drop(guard);
                state = self.enter(cpu);
            } else {
                state = self.hand_over(state, cpu);
            }
            state.cpus[cpu].status = Status::Ready;
            state.refresh(core);
        }
        true
    }

    /// Never returns: the CPU is stuck until the machine stops or it is reset.
    pub(crate) fn stuck<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> ! {
        state.record(cpu, Op::Stuck);
        state.cpus[cpu].status = Status::Stuck;
        let core = state.cpus[cpu].core;
        state.refresh(core);
        self.changed.notify_all();
        if self.free {
            while !state.stopping && !self.kill[cpu].load(Ordering::Acquire) {
                if self.started.elapsed() > self.limit {
                    let report = state.who_waits();
                    self.stop_all(&mut state, Stop::Deadlock(report));
                }
                let woken = self.changed.wait_timeout(state, Duration::from_millis(10));
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        } else if !state.stopping {
            drop(self.hand_over(state, cpu));
        }
        resume_unwind(Box::new(Killed));
    }

    /// One access of a shared word.
    fn touch(&self, cpu: usize, how: Touch, word: usize) {
        let mut state = self.enter(cpu);
        let costs = state.config.costs;
        let cost = match how {
            Touch::Load => {
                state.record(cpu, Op::SharedLoad);
                costs.shared_access
            }
            Touch::Store => {
                state.record(cpu, Op::SharedStore);
                costs.shared_access
            }
            Touch::Locked => {
                state.record(cpu, Op::SharedLocked);
                costs.locked
            }
            Touch::Fence => {
                state.cpus[cpu].counters.fences += 1;
                costs.locked
            }
        };
        state.check_touch(cpu, how);
        state.charge(cpu, cost);
        if matches!(how, Touch::Store | Touch::Locked) {
            let at = state.cpus[cpu].time + costs.visible;
            state.wake_word(word, at);
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
                Some(next) => self.pass(&state, next),
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
                    let at = state.cpus[n].time;
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

    fn stop_all(&self, state: &mut State, why: Stop) {
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

    /// Ends the threads of CPUs from outside (INIT, S3) and returns when they are gone.
    pub(crate) fn kill_and_wait<'a>(&'a self, mut state: Guard<'a>, cpus: &[usize]) -> Guard<'a> {
        for &n in cpus {
            if state.cpus[n].status != Status::Off {
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

impl State {
    pub(crate) fn enqueue(&mut self, cpu: usize, time: u64) {
        self.queue.insert((time, cpu));
        self.cpus[cpu].queued = Some(time);
    }

    fn leave_queue(&mut self, cpu: usize) {
        if let Some(time) = self.cpus[cpu].queued.take() {
            self.queue.remove(&(time, cpu));
        }
        if self.cpus[cpu].status == Status::Waiting
            && let Some(wait) = self.cpus[cpu].wait
            && let Some(waiters) = self.waiters.get_mut(&wait.word)
        {
            waiters.retain(|n| *n != cpu);
        }
    }

    /// Takes the next CPU out of the queue and lets its time reach the moment it was queued for.
    fn dequeue(&mut self) -> Option<usize> {
        let &(time, cpu) = self.queue.first()?;
        self.leave_queue(cpu);
        let this = &mut self.cpus[cpu];
        this.time = this.time.max(time);
        this.status = Status::Ready;
        Some(cpu)
    }

    /// Makes a sleeping CPU run again at `time`.
    pub(crate) fn make_ready(&mut self, cpu: usize, time: u64) {
        self.leave_queue(cpu);
        self.cpus[cpu].status = Status::Ready;
        let time = time.max(self.cpus[cpu].time);
        self.enqueue(cpu, time);
    }

    fn wake_word(&mut self, word: usize, at: u64) {
        for cpu in self.waiters.remove(&word).unwrap_or_default() {
            let at = self.cpus[cpu]
                .queued
                .map_or(at, |deadline| deadline.min(at));
            self.make_ready(cpu, at);
        }
    }

    /// Who is where, for a report of a hang.
    pub(crate) fn who_waits(&self) -> String {
        let mut text = String::from("no simulated CPU can go on:");
        for (n, cpu) in self.cpus.iter().enumerate() {
            if cpu.status == Status::Off && n != 0 {
                continue;
            }
            let (status, last) = (cpu.status, cpu.last);
            let _ = write!(text, "\n  CPU {n} at {} ps: {status:?}", cpu.time);
            if let Some(wait) = cpu.wait {
                let Wait {
                    word,
                    seen,
                    since,
                    place,
                } = wait;
                let _ = write!(
                    text,
                    " for word {word:#x} to stop being {seen:#x}, since {since} ps, in {place}"
                );
            }
            let _ = write!(text, ", last did {last:?}");
        }
        text
    }

    /// The rules for shared words.
    fn check_touch(&mut self, cpu: usize, how: Touch) {
        let this = &self.cpus[cpu];
        let mtrrs_off = this.regs.cap.is_some() && !self.sets[this.set].enabled();
        if this.in_window {
            let text = format!("{how:?} of a shared word inside the window");
            self.violate(cpu, Rule::SharedTouchInWindow, text);
        } else if how == Touch::Locked && mtrrs_off {
            let text = String::from("a locked instruction is a bus lock on uncachable memory");
            self.violate(cpu, Rule::LockedWithMtrrsOff, text);
        }
    }
}

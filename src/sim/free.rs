//! Threads that run as they like: what time it is then, and who wakes whom.
//!
//! The host's clock is no measure: a loaded host leaves a healthy CPU's thread alone for as long as
//! it likes. So the machine has one clock, which moves by a tick at every scheduling point, and on to
//! the next deadline when no CPU can go on by itself, and only then. A wait for a CPU that never
//! comes ends at once, and one for a CPU that is merely slow does not end before it came.
//! Nobody sleeps before having looked at what others stored: when all do, nothing is left unseen.

use super::sched::{Guard, Shared};
use super::state::{State, Status};

/// What one scheduling point takes, picoseconds: next to nothing, but a loop that reads the
/// time-stamp counter ends.
const TICK: u64 = 1_000;

/// How long APs that are about to halt may take before the machine is suspended, picoseconds.
const SECOND: u64 = 1_000_000_000_000;

impl Shared {
    pub(super) fn enter_free<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> Guard<'a> {
        state.stored(cpu);
        if state.random != 0 && state.dice().is_multiple_of(16) && state.can_go_on(|n| n != cpu) {
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        state.clock += TICK;
        state.wake_due();
        state.cpus[cpu].time = state.clock;
        state
    }

    /// Sleeps until somebody makes this CPU ready; unwinds if it is killed instead.
    pub(super) fn sleep_free<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> Guard<'a> {
        self.move_on(&mut state);
        while state.cpus[cpu].status != Status::Ready {
            drop(state);
            self.end_if_killed(cpu);
            std::thread::park();
            state = self.lock();
        }
        state.cpus[cpu].time = state.clock;
        state
    }

    /// If no CPU can go on by itself, lets the time of the next deadline come.
    pub(super) fn move_on(&self, state: &mut State) {
        if state.can_go_on(|_| true) || state.stop.is_some() {
            return;
        }
        match state.queue.first() {
            Some(&(deadline, _)) => {
                state.clock = state.clock.max(deadline);
                state.wake_due();
            }
            None => self.nobody(state),
        }
    }

    /// Lets a CPU lose this much time.
    pub(super) fn lose<'a>(&'a self, mut state: Guard<'a>, cpu: usize, time: u64) -> Guard<'a> {
        if !self.free {
            state.spend_exactly(cpu, time);
            return state;
        }
        let end = state.clock.saturating_add(time);
        while state.clock < end {
            state.cpus[cpu].wait = None;
            state.sleeps_until(cpu, end);
            state = self.sleep_free(state, cpu);
        }
        state
    }

    /// Gives APs that are about to halt the time to do so.
    pub(super) fn settle<'a>(&'a self, state: Guard<'a>) -> Guard<'a> {
        if self.free && state.cpus.iter().skip(1).any(|cpu| cpu.runs()) {
            self.lose(state, 0, SECOND)
        } else {
            state
        }
    }
}

impl State {
    /// What this CPU was about to store when it was last here is there now: whoever pauses, or is
    /// about to, looks again, for this word or another.
    pub(super) fn stored(&mut self, cpu: usize) {
        if !core::mem::take(&mut self.cpus[cpu].storing) {
            return;
        }
        for n in (0..self.cpus.len()).filter(|n| *n != cpu) {
            let this = &mut self.cpus[n];
            this.news = true;
            if this.status == Status::Waiting && this.wait.is_some() {
                self.make_ready(n, self.clock);
            }
        }
    }

    /// Whether a CPU among these can go on by itself.
    fn can_go_on(&self, among: impl Fn(usize) -> bool) -> bool {
        let mut all = self.cpus.iter().enumerate();
        all.any(|(n, cpu)| cpu.status == Status::Ready && among(n))
    }

    /// Puts a CPU to sleep for everything but the clock.
    pub(super) fn sleeps_until(&mut self, cpu: usize, deadline: u64) {
        self.cpus[cpu].status = Status::Waiting;
        self.enqueue(cpu, deadline);
    }

    /// Wakes every CPU whose deadline has come.
    fn wake_due(&mut self) {
        while let Some(&(deadline, cpu)) = self.queue.first()
            && deadline <= self.clock
        {
            self.make_ready(cpu, deadline);
        }
    }
}

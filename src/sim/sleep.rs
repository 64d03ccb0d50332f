//! Sleeping CPUs: what they wait for, and in which order they wake.

use core::fmt::Write as _;
use std::panic::{Location, resume_unwind};

use super::log::{Activity, Op};
use super::sched::{Guard, Killed, Shared};
use super::state::{State, Status, Wait};
use crate::atomic::Word;

impl Shared {
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
        let this = &mut state.cpus[cpu];
        let due = this.pending && this.regs.interrupts;
        let news = core::mem::take(&mut this.news);
        let passed = deadline.is_some_and(|deadline| deadline <= since);
        if word.peek() != seen || passed || due || news {
            let pause = state.config.costs.pause;
            state.charge(cpu, pause);
            return;
        }
        state.cpus[cpu].status = Status::Waiting;
        state.waiters.entry(address).or_default().push(cpu);
        if let Some(deadline) = deadline {
            state.enqueue(cpu, deadline);
        }
        let mut state = self.sleep(state, cpu);
        state.cpus[cpu].news = false;
        let now = state.cpus[cpu].time;
        state.cpus[cpu].counters.waited += now - since;
        state.span(cpu, since, now, Activity::Waiting);
    }

    /// Sleeps in HLT until an interrupt is pending (`true`) or the machine stops (`false`).
    pub(crate) fn wait_interrupt<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> bool {
        let core = state.cpus[cpu].core;
        while !(state.cpus[cpu].pending && state.cpus[cpu].regs.interrupts) {
            if state.stopping {
                return false;
            }
            let since = state.cpus[cpu].time;
            state.cpus[cpu].status = Status::Halted;
            state.refresh(core);
            state = self.sleep(state, cpu);
            state.cpus[cpu].status = Status::Ready;
            state.refresh(core);
            let now = state.cpus[cpu].time;
            state.span(cpu, since, now, Activity::Halted);
        }
        true
    }

    /// Never returns: the CPU is stuck until the machine stops or it is reset.
    pub(crate) fn stuck<'a>(&'a self, mut state: Guard<'a>, cpu: usize) -> ! {
        state.record(cpu, Op::Stuck);
        state.cpus[cpu].status = Status::Stuck;
        let core = state.cpus[cpu].core;
        state.refresh(core);
        if !state.stopping {
            drop(self.sleep(state, cpu));
        }
        resume_unwind(Box::new(Killed));
    }
}

impl State {
    pub(crate) fn enqueue(&mut self, cpu: usize, time: u64) {
        self.queue.insert((time, cpu));
        self.cpus[cpu].queued = Some(time);
    }

    pub(super) fn leave_queue(&mut self, cpu: usize) {
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
    pub(super) fn dequeue(&mut self) -> Option<usize> {
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
        if !self.free() {
            self.enqueue(cpu, time);
        } else if let Some(thread) = &self.cpus[cpu].handle {
            thread.unpark();
        }
    }

    pub(super) fn wake_word(&mut self, word: usize, at: u64) {
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
            if let Some(last) = last {
                let _ = write!(text, ", last did {last:?}");
            }
        }
        text
    }
}

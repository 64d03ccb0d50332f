//! All CPUs meet: gather, commit, release.
//!
//! Owns who waits for whom, and for how long; refuses to know registers. It sees CPU numbers, and
//! runs a step it is given. The boot CPU leads. Until it commits, nothing has been changed and a
//! missing CPU ends the meeting; after it, everyone finishes. Cores act in parallel, the threads
//! of one core in turn; whoever is not acting does nothing but wait.

pub(crate) mod admit;
pub(crate) mod declared;
pub(crate) mod hold;
mod meeting;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod slot;
pub(crate) mod target;

pub(crate) use self::meeting::Meeting;
pub use slot::CpuState;

use self::hold::{Core, hold_point};
use self::slot::{Deadline, const_fn_unless_loom, publish};
use crate::atomic::{Ordering, Word, full_fence};
use crate::cpu::CpuOps;
use crate::program::masked;

/// Phases of the gate's word; the number of the meeting is above them.
const CLOSED: u32 = 0;
const GATHER: u32 = 1;
/// All are here and the leader is about to commit: nobody may give up any more.
const SEALED: u32 = 2;
const COMMIT: u32 = 3;
const ABORTED: u32 = 4;
const PHASE: u32 = 0b111;
const ONE: u32 = 8;

/// What a CPU did in a meeting, below the meeting's number in its `arrived` word.
const AT: u32 = 1;
const DONE: u32 = 2;
/// Went away without a step: there was nothing to do, or it looked too late.
const LEFT: u32 = 3;

/// Why a meeting did not come about. Nothing was changed on any CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMeeting {
    /// Another one is being led.
    Busy,
    /// Somebody did not arrive in time: how many, and the lowest number.
    Missing { count: u32, first: usize },
    /// The leader was silent for so long that a CPU that had arrived gave it up.
    Abandoned,
    /// What was to be committed no longer fits.
    Refused,
}

/// CPUs that arrived but did not do their step in time: how many, and the lowest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Stuck {
    pub(crate) count: u32,
    pub(crate) first: usize,
}

impl Stuck {
    /// One more: the leader, whose turn did not come.
    fn and(self, cpu: usize) -> Self {
        let first = if self.count == 0 {
            cpu
        } else {
            self.first.min(cpu)
        };
        Self {
            count: self.count.saturating_add(1),
            first,
        }
    }
}

/// How a CPU's part in a meeting went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attended {
    /// No meeting is open, or it does not want this CPU.
    NotNow,
    /// This CPU number has arrived already.
    Twice,
    /// The meeting came to nothing; nothing was changed.
    Aborted,
    /// This CPU arrived, and then did not look until the meeting was over: it may have been carried
    /// out without this CPU's step.
    Missed,
    /// The boot CPU fell silent before it committed; nothing was changed.
    LeaderSilent,
    /// This CPU did its step.
    Done,
    /// A sibling did not finish before this CPU's turn came: it did not do its step.
    SiblingStuck(usize),
}

/// What a meeting is about, and the leader's part in it.
#[derive(Debug)]
pub(crate) struct Agenda<Kick, Commit, Step, Close> {
    /// The leader's word to the steps.
    pub(crate) work: u32,
    /// Calls a CPU, by an interrupt.
    pub(crate) kick: Kick,
    /// Runs once all have arrived and before any step; if it fails nothing happens.
    pub(crate) commit: Commit,
    /// The leader's own step: told, as in [`Gate::attend`], whether its turn came.
    pub(crate) step: Step,
    /// Runs when all are done, but for those that are stuck, and still wait.
    pub(crate) close: Close,
}

/// The word all wait on, and the leader's lock.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Gate {
    /// Phase and number of the meeting. Written by the leader; Gather to Aborted also by a CPU
    /// that gives the leader up.
    word: Word,
    /// 1 while a meeting is being led.
    led: Word,
    /// What the meeting is about: the leader's word to the steps. Written before Gather.
    pub(crate) work: Word,
}

impl Gate {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                word: Word::new(CLOSED),
                led: Word::new(0),
                work: Word::new(0),
            }
        }
    }

    /// Whether a meeting is between its call and its end.
    pub(crate) fn open(&self) -> bool {
        !matches!(self.word.load(Ordering::Acquire) & PHASE, CLOSED | ABORTED)
    }

    /// Whether the meeting of this number is the last one, and was called off: who came to it goes away.
    pub(crate) fn called_off(&self, number: u32) -> bool {
        self.word.load(Ordering::Acquire) == number | ABORTED
    }

    /// Ends whatever was going on. By the boot CPU, when all others lost their state.
    pub(crate) fn reset(&self) {
        let number = self.word.load(Ordering::Relaxed) & !PHASE;
        self.word.store(number | ABORTED, Ordering::Release);
        self.led.store(0, Ordering::Release);
    }

    /// Leads a meeting of every CPU that may run. Interrupts are masked throughout.
    pub(crate) fn lead<C: CpuOps>(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut C,
        agenda: Agenda<
            impl FnMut(usize),
            impl FnOnce(&mut C) -> bool,
            impl FnOnce(&mut C, Result<(), usize>),
            impl FnOnce(&mut C),
        >,
    ) -> Result<Stuck, NoMeeting> {
        if self.led.compare_exchange(0, 1).is_err() {
            return Err(NoMeeting::Busy);
        }
        let number = (self.word.own() & !PHASE).wrapping_add(ONE);
        self.work.store(agenda.work, Ordering::Release);
        let result = masked(cpu, |cpu| {
            self.gather(meeting, cpu, number, agenda.kick, agenda.commit)?;
            Ok(self.carry_out(meeting, cpu, number, agenda.step, agenda.close))
        });
        if result.is_err() {
            publish(cpu, &self.word, number | ABORTED);
            meeting.arrive(cpu, number | LEFT);
        }
        self.led.store(0, Ordering::Release);
        result
    }

    /// Calls, waits, seals and commits.
    fn gather<C: CpuOps>(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut C,
        number: u32,
        mut kick: impl FnMut(usize),
        commit: impl FnOnce(&mut C) -> bool,
    ) -> Result<(), NoMeeting> {
        publish(cpu, &self.word, number | GATHER);
        // Partner: the fence in `admit`: either it sees the gate open, or we see the CPU.
        full_fence();
        for (other, slot) in meeting.used().iter().enumerate() {
            if slot.state().may_run() || other == meeting.me {
                publish(cpu, &slot.handshake.summon, number);
            }
        }
        meeting.arrive(cpu, number | AT);
        for (other, slot) in meeting.others() {
            if slot.handshake.summon.own() == number {
                kick(other);
            }
        }
        meeting.wait_for_all(cpu, number, AT, meeting.bounds.gather)?;
        let sealed = self
            .word
            .compare_exchange(number | GATHER, number | SEALED)
            .is_ok();
        if !sealed {
            return Err(NoMeeting::Abandoned);
        }
        if !commit(cpu) {
            return Err(NoMeeting::Refused);
        }
        publish(cpu, &self.word, number | COMMIT);
        Ok(())
    }

    /// After the commit: the leader's own step, then the wait for everybody else's, and the end.
    fn carry_out<C: CpuOps>(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut C,
        number: u32,
        step: impl FnOnce(&mut C, Result<(), usize>),
        close: impl FnOnce(&mut C),
    ) -> Stuck {
        let waited = meeting.wait_for_turn(cpu, number);
        step(cpu, waited.map_or(Ok(()), Err));
        meeting.arrive(cpu, number | DONE);
        // Longer than anybody waits for its turn.
        let bound = meeting.bounds.finish.saturating_mul(2);
        let bound = bound.saturating_mul(meeting.turns(number));
        let stuck = match meeting.wait_for_all(cpu, number, DONE, bound) {
            Err(NoMeeting::Missing { count, first }) => Stuck { count, first },
            _ => Stuck::default(),
        };
        close(cpu);
        publish(cpu, &self.word, number | CLOSED);
        if waited.is_none() {
            stuck
        } else {
            stuck.and(meeting.me)
        }
    }

    /// The number of the meeting that is gathering and waits for this CPU.
    ///
    /// # Errors
    /// [`Attended::NotNow`], [`Attended::Twice`].
    pub(crate) fn called(&self, meeting: &Meeting<'_>) -> Result<u32, Attended> {
        let Some(me) = meeting.slots.get(meeting.me).map(|slot| &slot.handshake) else {
            return Err(Attended::NotNow);
        };
        let word = self.word.load(Ordering::Acquire);
        let number = word & !PHASE;
        let arrived = me.arrived.own();
        if !matches!(word & PHASE, GATHER | SEALED | COMMIT)
            || me.summon.load(Ordering::Acquire) != number
        {
            return Err(Attended::NotNow);
        }
        if arrived & !PHASE == number {
            return Err(Attended::Twice);
        }
        if word & PHASE != GATHER {
            return Err(Attended::NotNow);
        }
        Ok(number)
    }

    /// Takes part in the meeting that is open, if it wants this CPU. Interrupts are masked until it
    /// is over. `step` is told whether its turn came, or which sibling did not finish before it:
    /// what it writes down is there when the leader sees the meeting end.
    pub(crate) fn attend<C: CpuOps>(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut C,
        step: impl FnOnce(&mut C, Result<(), usize>),
    ) -> Attended {
        let number = match self.called(meeting) {
            Ok(number) => number,
            Err(nothing) => return nothing,
        };
        masked(cpu, |cpu| {
            meeting.arrive(cpu, number | AT);
            match self.wait_for_decision(meeting, cpu, number) {
                Attended::Done => self.act(meeting, cpu, number, step),
                nothing => {
                    meeting.arrive(cpu, number | LEFT);
                    nothing
                }
            }
        })
    }

    /// Waits until the leader has committed (`Done`) or the meeting came to nothing.
    fn wait_for_decision(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut impl CpuOps,
        number: u32,
    ) -> Attended {
        let core = Core::of(meeting.slots, meeting.me);
        // The leader ends the gathering long before this: it is the last resort against a leader
        // that is dead, and the one exchange a CPU may make that is not yet in line.
        let silent = Deadline::after(cpu, meeting.bounds.gather.saturating_mul(4));
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word == number | COMMIT {
                return Attended::Done;
            }
            if word == number | ABORTED {
                return Attended::Aborted;
            }
            if word != number | GATHER && word != number | SEALED {
                return Attended::Missed;
            }
            hold_point(core, cpu, meeting.bounds, usize::MAX);
            if silent.passed(cpu)
                && self
                    .word
                    .compare_exchange(number | GATHER, number | ABORTED)
                    .is_ok()
            {
                return Attended::LeaderSilent;
            }
            meeting.pause(cpu, core, silent, &self.word, word);
        }
    }

    /// This CPU's step when its turn comes, then the wait for the end.
    fn act<C: CpuOps>(
        &self,
        meeting: &Meeting<'_>,
        cpu: &mut C,
        number: u32,
        step: impl FnOnce(&mut C, Result<(), usize>),
    ) -> Attended {
        let stuck = meeting.wait_for_turn(cpu, number);
        step(cpu, stuck.map_or(Ok(()), Err));
        meeting.arrive(cpu, number | DONE);
        // Longer than the leader's own wait; a leader stuck in its step is not waited for for ever.
        let bound = meeting.bounds.finish.saturating_mul(4);
        let end = Deadline::after(cpu, bound.saturating_mul(meeting.turns(number)));
        while self.word.load(Ordering::Acquire) == number | COMMIT && !end.passed(cpu) {
            end.pause(cpu, &self.word, number | COMMIT);
        }
        stuck.map_or(Attended::Done, Attended::SiblingStuck)
    }
}

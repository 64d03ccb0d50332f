//! All CPUs meet: gather, commit, release.
//!
//! Owns who waits for whom, and for how long; refuses to know registers. It sees CPU numbers, and
//! runs a step it is given. The boot CPU leads. Until it commits, nothing has been changed and a
//! missing CPU ends the rendezvous; after it, everyone finishes. Cores act in parallel, the threads
//! of one core in turn; whoever is not acting does nothing but wait.
//!
//! Nobody waits for the boot CPU with a bound: a machine whose boot CPU is dead is dead.

pub(crate) mod admit;
mod deadline;
pub(crate) mod hold;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod peers;
pub(crate) mod slot;
pub(crate) mod target;
mod waits;

pub use self::slot::CpuState;
pub(crate) use self::waits::Late;

use self::deadline::Deadline;
use self::peers::Peers;
use self::slot::{AT, DONE, LEFT, PHASE, const_fn_unless_loom};
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;
use crate::error::Error;
use crate::program::masked;

/// Phases of the gate's word; the number of the rendezvous is above them.
const CLOSED: u32 = 0;
const GATHER: u32 = 1;
const COMMIT: u32 = 2;
const ABORTED: u32 = 3;
const ONE: u32 = 8;

/// How a CPU's part in a rendezvous went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// There is none that wants this CPU.
    NotNow,
    /// It was called off; nothing was changed.
    CalledOff,
    /// This CPU did what it had to; its outcome is in the report.
    Done,
}

/// What a rendezvous is about, and the leader's part in it.
#[derive(Debug)]
pub(crate) struct Agenda<Kick, Commit, Step, Close> {
    /// The leader's word to the steps.
    pub(crate) work: u32,
    /// Calls a CPU, by an interrupt.
    pub(crate) kick: Kick,
    /// Runs once all have arrived and before any step.
    pub(crate) commit: Commit,
    /// The leader's own step: told, as in [`Gate::attend`], whether its turn came.
    pub(crate) step: Step,
    /// Runs when all are done, but for those that are stuck, and still wait.
    pub(crate) close: Close,
}

/// The word all wait on. Written by the leader alone.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Gate {
    /// Phase and number of the rendezvous.
    word: Word,
    /// What the rendezvous is about: the leader's word to the steps. Written before Gather.
    pub(crate) work: Word,
}

const fn is_open(word: u32) -> bool {
    matches!(word & PHASE, GATHER | COMMIT)
}

impl Gate {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                word: Word::new(CLOSED),
                work: Word::new(0),
            }
        }
    }

    /// Whether a rendezvous is between its call and its end.
    pub(crate) fn open(&self) -> bool {
        is_open(self.word.load(Ordering::Acquire))
    }

    /// Whether the rendezvous of this number is the last one, and was called off: who came to it goes away.
    pub(crate) fn called_off(&self, number: u32) -> bool {
        self.word.load(Ordering::Acquire) == number | ABORTED
    }

    /// Leads a rendezvous of every CPU that may run. Interrupts are masked throughout. On the boot CPU
    /// alone: another rendezvous can only be one that this call interrupts.
    pub(crate) fn lead<C: CpuOps>(
        &self,
        peers: Peers<'_>,
        cpu: &mut C,
        agenda: Agenda<
            impl FnMut(usize),
            impl FnOnce(),
            impl FnOnce(&mut C, Result<(), Error>),
            impl FnOnce(),
        >,
    ) -> Result<Late, Error> {
        masked(cpu, |cpu| {
            if self.open() {
                return Err(Error::Busy);
            }
            // 0 is the number of no rendezvous.
            let number = (self.word.own() & !PHASE).wrapping_add(ONE).max(ONE);
            self.work.store(agenda.work, Ordering::Release);
            if let Err(Late { count, first }) = self.gather(peers, cpu, number, agenda.kick) {
                self.word.store(number | ABORTED, Ordering::Release);
                peers.arrive(number | LEFT);
                return Err(Error::Missing { count, first });
            }
            (agenda.commit)();
            self.word.store(number | COMMIT, Ordering::Release);
            Ok(self.carry_out(peers, cpu, number, agenda.step, agenda.close))
        })
    }

    /// Calls everybody and waits; calls those again that have not come at half the bound.
    fn gather(
        &self,
        peers: Peers<'_>,
        cpu: &mut impl CpuOps,
        number: u32,
        mut kick: impl FnMut(usize),
    ) -> Result<(), Late> {
        self.word.store(number | GATHER, Ordering::Release);
        // Partner: the fence in `admit`: either it sees the gate open, or we see the CPU.
        cpu.mfence();
        for (other, slot) in peers.used().iter().enumerate() {
            if slot.state().may_run() || other == peers.me {
                slot.handshake.summon.store(number, Ordering::Release);
            }
        }
        peers.arrive(number | AT);
        let half = peers.bounds.gather / 2;
        peers.not_at(number, AT).for_each(|(other, _)| kick(other));
        if peers.wait_for_all(cpu, number, AT, half).is_ok() {
            return Ok(());
        }
        peers.not_at(number, AT).for_each(|(other, _)| kick(other));
        peers.wait_for_all(cpu, number, AT, peers.bounds.gather - half)
    }

    /// After the commit: the leader's own step, then the wait for everybody else's, and the end.
    fn carry_out<C: CpuOps>(
        &self,
        peers: Peers<'_>,
        cpu: &mut C,
        number: u32,
        step: impl FnOnce(&mut C, Result<(), Error>),
        close: impl FnOnce(),
    ) -> Late {
        let turn = peers.wait_for_turn(cpu, number);
        step(cpu, turn);
        peers.arrive(number | DONE);
        // Longer than anybody waits for its turn.
        let bound = peers.bounds.finish.saturating_mul(2);
        let bound = bound.saturating_mul(peers.turns());
        let done = peers.wait_for_all(cpu, number, DONE, bound);
        close();
        self.word.store(number | CLOSED, Ordering::Release);
        let mut stuck = done.err().unwrap_or_default();
        if turn.is_err() {
            stuck.add(peers.me);
        }
        stuck
    }

    /// The number of the rendezvous that is gathering and waits for this CPU, if there is one.
    ///
    /// # Errors
    /// [`Error::ArrivedTwice`].
    pub(crate) fn called(&self, peers: Peers<'_>) -> Result<Option<u32>, Error> {
        let word = self.word.load(Ordering::Acquire);
        let number = word & !PHASE;
        let Some(me) = peers.mine().map(|slot| &slot.handshake) else {
            return Ok(None);
        };
        if !is_open(word) || me.summon.load(Ordering::Acquire) != number {
            Ok(None)
        } else if me.arrived.own() & !PHASE == number {
            Err(Error::ArrivedTwice { cpu: peers.me })
        } else {
            Ok((word & PHASE == GATHER).then_some(number))
        }
    }

    /// Takes part in the rendezvous of the `number` that [`Gate::called`] gave, with interrupts masked
    /// since. `step` is told whether its turn came, or which sibling did not finish before it: what
    /// it writes down is there when the leader sees the rendezvous end.
    ///
    /// # Errors
    /// [`Error::SiblingStuck`]: its turn did not come. [`Error::Stuck`] with this CPU's number: it arrived,
    /// and then did not look until all was over, perhaps without its step.
    pub(crate) fn attend<C: CpuOps>(
        &self,
        peers: Peers<'_>,
        cpu: &mut C,
        number: u32,
        step: impl FnOnce(&mut C, Result<(), Error>),
    ) -> Result<Attendance, Error> {
        peers.arrive(number | AT);
        let over = self.wait_while(peers, cpu, number | GATHER);
        if over != number | COMMIT {
            peers.arrive(number | LEFT);
            let (count, first) = (1, peers.me);
            return if over == number | ABORTED {
                Ok(Attendance::CalledOff)
            } else {
                Err(Error::Stuck { count, first })
            };
        }
        let turn = peers.wait_for_turn(cpu, number);
        step(cpu, turn);
        peers.arrive(number | DONE);
        self.wait_while(peers, cpu, number | COMMIT);
        turn.map(|()| Attendance::Done)
    }

    /// Waits until the word is another than `seen`, and stands still for siblings that ask meanwhile:
    /// the word then.
    fn wait_while(&self, peers: Peers<'_>, cpu: &mut impl CpuOps, seen: u32) -> u32 {
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word != seen {
                return word;
            }
            let _ = peers.hold_point(cpu);
            Deadline::NEVER.pause_briefly(cpu, &self.word, seen);
        }
    }
}

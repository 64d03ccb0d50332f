//! The waits of a rendezvous, in which CPUs only look at each other's lines.

use super::deadline::Deadline;
use super::peers::Peers;
use super::slot::{AT, DONE, PHASE, Slot};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::error::Error;

/// CPUs that were waited for in vain: how many, and the lowest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Late {
    pub(crate) count: u32,
    pub(crate) first: usize,
}

impl Late {
    pub(super) fn add(&mut self, cpu: usize) {
        self.first = if self.count == 0 {
            cpu
        } else {
            self.first.min(cpu)
        };
        self.count = self.count.saturating_add(1);
    }
}

impl<'a> Peers<'a> {
    /// Says what this CPU did in a rendezvous.
    pub(super) fn arrive(self, word: u32) {
        if let Some(slot) = self.mine() {
            slot.handshake.arrived.store(word, Ordering::Release);
        }
    }

    /// The others that the rendezvous of this number waits for at `stage`.
    pub(super) fn not_at(self, number: u32, stage: u32) -> impl Iterator<Item = (usize, &'a Slot)> {
        self.others()
            .filter(move |(_, slot)| awaited(slot, number, stage).is_some())
    }

    /// Waits, for at most `bound` ticks, until every summoned CPU has come to `stage`.
    ///
    /// # Errors
    /// Those that have not.
    pub(super) fn wait_for_all(
        self,
        cpu: &mut impl CpuOps,
        number: u32,
        stage: u32,
        bound: u64,
    ) -> Result<(), Late> {
        let deadline = Deadline::after(cpu, bound);
        let mut late = Late::default();
        for (other, slot) in self.others() {
            loop {
                let last = deadline.passed(cpu);
                let Some(word) = awaited(slot, number, stage) else {
                    break;
                };
                if last {
                    late.add(other);
                    break;
                }
                if stage == AT {
                    let _ = self.hold_point(cpu);
                }
                deadline.pause_briefly(cpu, &slot.handshake.arrived, word);
            }
        }
        if late.count == 0 { Ok(()) } else { Err(late) }
    }

    /// Waits for the threads of this core with lower numbers.
    ///
    /// # Errors
    /// [`Error::SiblingStuck`]: the first that did not finish in time.
    pub(super) fn wait_for_turn(self, cpu: &mut impl CpuOps, number: u32) -> Result<(), Error> {
        for (other, slot) in self.siblings() {
            if other > self.me || slot.summoned() != number {
                continue;
            }
            let deadline = Deadline::after(cpu, self.bounds.finish);
            loop {
                let last = deadline.passed(cpu);
                let word = slot.handshake.arrived.load(Ordering::Acquire);
                if word == number | DONE || !slot.state().may_run() {
                    break;
                }
                if last {
                    return Err(Error::SiblingStuck { cpu: other });
                }
                deadline.pause(cpu, &slot.handshake.arrived, word);
            }
        }
        Ok(())
    }

    /// How many CPUs act one after the other at most, as a factor of a bound.
    pub(super) fn turns(self) -> u64 {
        if self.declared.unplaced() {
            self.used().len() as u64
        } else {
            1
        }
    }
}

/// What a CPU has said, if the rendezvous of this number wants it and waits for it to come to `stage`. One
/// that was declared, and taken back because the gate was open, never comes.
fn awaited(slot: &Slot, number: u32, stage: u32) -> Option<u32> {
    let word = slot.handshake.arrived.load(Ordering::Acquire);
    let there = word & !PHASE == number && word & PHASE >= stage;
    (slot.summoned() == number && !there && slot.state().may_run()).then_some(word)
}

//! Who meets, and the waits in which CPUs only look at each other's lines.

use super::declared::Declared;
use super::hold::{Core, hold_point};
use super::slot::{CpuState, Deadline, Slot, poll, publish};
use super::{AT, DONE, NoMeeting, PHASE};
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;
use crate::policy::Bounds;

/// Who meets, as one CPU sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting<'a> {
    pub(crate) slots: &'a [Slot],
    pub(crate) declared: &'a Declared,
    pub(crate) me: usize,
    pub(crate) bounds: &'a Bounds,
}

impl<'a> Meeting<'a> {
    /// The CPUs that were ever declared. Those of a meeting are among them once it has been called.
    pub(super) fn used(&self) -> &'a [Slot] {
        self.declared.used(self.slots)
    }

    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &'a Slot)> {
        let (used, me) = (self.used(), self.me);
        used.iter().enumerate().filter(move |(n, _)| *n != me)
    }

    /// Whether it is not known which threads share a core: then all CPUs act in turn. Known once the
    /// meeting has been called; one that is refused then may raise it for a while, which only makes
    /// others wait.
    pub(crate) fn one_by_one(&self) -> bool {
        self.declared.unplaced()
    }

    pub(super) fn arrive(&self, cpu: &mut impl CpuOps, word: u32) {
        if let Some(slot) = self.slots.get(self.me) {
            publish(cpu, &slot.handshake.arrived, word);
        }
    }

    /// Waits until every summoned CPU has arrived at `stage`; counts those that have not.
    pub(super) fn wait_for_all(
        &self,
        cpu: &mut impl CpuOps,
        number: u32,
        stage: u32,
        bound: u64,
    ) -> Result<(), NoMeeting> {
        let core = Core::of(self.slots, self.me);
        let deadline = Deadline::after(cpu, bound);
        let mut missing = 0;
        let mut first = 0;
        let reached = |word: u32| word & !PHASE == number && word & PHASE >= stage;
        for (other, slot) in self.others() {
            if slot.handshake.summon.own() != number {
                continue;
            }
            // Those that are done are in line, so seen without dropping a copy of their line first; if
            // not, the copy is of an earlier stage.
            if stage == DONE && reached(slot.handshake.arrived.load(Ordering::Acquire)) {
                continue;
            }
            let arrived = loop {
                let last = deadline.passed(cpu);
                let word = poll(cpu, &slot.handshake.arrived);
                let state = slot.state();
                // One that was declared, and taken back because the gate was open, never comes.
                let there = !state.may_run() || reached(word);
                if there || last {
                    break there;
                }
                if stage == AT {
                    hold_point(core, cpu, self.bounds, usize::MAX);
                }
                if state == CpuState::Starting {
                    deadline.pause_briefly(cpu, &slot.handshake.arrived, word);
                } else {
                    self.pause(cpu, core, deadline, &slot.handshake.arrived, word);
                }
            };
            if !arrived {
                if missing == 0 {
                    first = other;
                }
                missing += 1;
            }
        }
        if missing == 0 {
            Ok(())
        } else {
            Err(NoMeeting::Missing {
                count: missing,
                first,
            })
        }
    }

    /// Waits for the threads of this core with lower numbers (for all lower numbers, when cores
    /// are not known); returns the first that did not finish in time.
    pub(super) fn wait_for_turn(&self, cpu: &mut impl CpuOps, number: u32) -> Option<usize> {
        if self.one_by_one() {
            let lower = self.slots.iter().enumerate().take(self.me);
            self.wait_for_done(cpu, number, lower)
        } else {
            let core = Core::of(self.slots, self.me);
            let lower = core.siblings().filter(|(other, _)| *other < self.me);
            self.wait_for_done(cpu, number, lower)
        }
    }

    /// How many CPUs act one after the other at most, as far as this CPU knows.
    pub(super) fn turns(&self, number: u32) -> u64 {
        let summoned = |slot: &&Slot| slot.handshake.summon.load(Ordering::Acquire) == number;
        if self.one_by_one() {
            self.used().iter().filter(summoned).count() as u64
        } else {
            1
        }
    }

    fn wait_for_done(
        &self,
        cpu: &mut impl CpuOps,
        number: u32,
        others: impl Iterator<Item = (usize, &'a Slot)>,
    ) -> Option<usize> {
        for (other, slot) in others {
            if slot.handshake.summon.load(Ordering::Acquire) != number {
                continue;
            }
            let deadline = Deadline::after(cpu, self.bounds.finish);
            loop {
                let last = deadline.passed(cpu);
                let word = poll(cpu, &slot.handshake.arrived);
                if word == number | DONE || !slot.state().may_run() {
                    break;
                }
                if last {
                    return Some(other);
                }
                deadline.pause(cpu, &slot.handshake.arrived, word);
            }
        }
        None
    }

    /// A pause that ends in time to answer a sibling's request, if there are siblings.
    pub(super) fn pause(
        &self,
        cpu: &mut impl CpuOps,
        core: Core<'_>,
        deadline: Deadline,
        word: &Word,
        seen: u32,
    ) {
        if core.siblings().next().is_some() {
            deadline.pause_briefly(cpu, word, seen);
        } else {
            deadline.pause(cpu, word, seen);
        }
    }
}

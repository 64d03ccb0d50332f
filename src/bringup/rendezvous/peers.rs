//! The other CPUs, as one of them sees them: who was declared, and who shares its core.

use super::slot::{Slot, WindowCount, const_fn_unless_loom};
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;
use crate::policy::Ticks;
use crate::program::flush_tlb;

/// What the kernel has declared about all CPUs together. Written by whoever declares a CPU, one at a
/// time; read by those who look for CPUs, once a rendezvous or a window they are about keeps others from
/// being declared.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Declared {
    /// One more than the highest CPU number that was ever declared.
    used: Word,
    /// 1 while a CPU of unknown place may run: any two CPUs may share a core then.
    unplaced: Word,
    /// How often it changed who may be whose sibling.
    changes: Word,
}

impl Declared {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                used: Word::new(0),
                unplaced: Word::new(0),
                changes: Word::new(0),
            }
        }
    }

    /// The slots worth a look: no CPU above them was ever declared.
    pub(crate) fn used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        let used = self.used.load(Ordering::Acquire) as usize;
        slots.get(..used).unwrap_or(slots)
    }

    /// A CPU is about to be declared.
    pub(crate) fn note(&self, number: usize) {
        if self.used.load(Ordering::Relaxed) <= number as u32 {
            self.used.store(number as u32 + 1, Ordering::Release);
        }
    }

    /// Whether the place of some CPU is not known.
    pub(crate) fn unplaced(&self) -> bool {
        self.unplaced.load(Ordering::Acquire) != 0
    }

    /// From now on some place is not known, or all are.
    pub(crate) fn set_unplaced(&self, unplaced: bool) {
        if self.unplaced() != unplaced {
            self.unplaced.store(u32::from(unplaced), Ordering::Release);
            self.note_move();
        }
    }

    /// Siblings of before may be none any more: what was summed up over them says nothing now.
    pub(crate) fn note_move(&self) {
        let changes = self.changes.load(Ordering::Relaxed);
        self.changes
            .store(changes.wrapping_add(1), Ordering::Release);
    }
}

/// All CPUs as CPU `me` sees them, and how long it waits for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers<'a> {
    pub(crate) slots: &'a [Slot],
    pub(crate) declared: &'a Declared,
    pub(crate) me: usize,
    pub(crate) bounds: &'a Ticks,
}

impl<'a> Peers<'a> {
    /// This CPU's own lines.
    pub(crate) fn mine(self) -> Option<&'a Slot> {
        self.slots.get(self.me)
    }

    /// The CPUs that were ever declared. Those of a rendezvous are among them once it has been called.
    pub(crate) fn used(self) -> &'a [Slot] {
        self.declared.used(self.slots)
    }

    /// All of them but this one, with their numbers.
    pub(crate) fn others(self) -> impl Iterator<Item = (usize, &'a Slot)> {
        let used = self.used().iter().enumerate();
        used.filter(move |(number, _)| *number != self.me)
    }

    /// The other threads of this core, with their CPU numbers; everybody while a place is not known.
    pub(crate) fn siblings(self) -> impl Iterator<Item = (usize, &'a Slot)> {
        let (used, anybody) = (self.used().len(), self.declared.unplaced());
        let mut at = self.me;
        // A ring cannot be longer than the table, whatever is in the links.
        let mut left = self.slots.len();
        core::iter::from_fn(move || {
            at = if anybody {
                at.wrapping_add(1).checked_rem(used)?
            } else {
                self.slots.get(at)?.handshake.next.load(Ordering::Acquire) as usize
            };
            left = left.checked_sub(1)?;
            (at != self.me).then_some((at, self.slots.get(at)?))
        })
    }

    /// Windows all siblings have opened so far; another sum whenever they are others.
    pub(crate) fn sibling_windows(self) -> WindowCount {
        let windows = |(_, slot): (usize, &Slot)| slot.handshake.windows.count();
        let none = WindowCount::among(self.declared.changes.load(Ordering::Acquire));
        self.siblings().map(windows).fold(none, WindowCount::and)
    }

    /// Drops what this CPU may have translated, and cached, under types that siblings' windows
    /// replaced since it last did so: whether there were any. `closed`: none is open now, so what is
    /// dropped does not come back.
    ///
    /// Source: Intel SDM 3A, "Processor Translation Lookaside Buffers (TLBs)" in the chapter on
    /// Hyper-Threading; "Preventing Caching": lines are flushed after translations that fill them.
    pub(crate) fn flush_after_siblings(self, cpu: &mut impl CpuOps, closed: bool) -> bool {
        let Some(record) = self.mine().map(|slot| &slot.record) else {
            return false;
        };
        let (seen, now) = (record.windows_seen.count(), self.sibling_windows());
        if seen == now {
            return false;
        }
        flush_tlb(cpu);
        if now.took_away_since(seen) {
            cpu.wbinvd();
        }
        if closed {
            record.windows_seen.set(now);
        }
        true
    }
}

//! What the kernel has declared about all CPUs together. Written by whoever declares a CPU, one at a
//! time; read by those who look for CPUs, once a meeting or a window they are about keeps others from
//! being declared.

use super::slot::{Slot, const_fn_unless_loom, publish};
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;

/// See the module.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Declared {
    /// One more than the highest CPU number that was ever declared.
    used: Word,
    /// CPUs declared with an unknown place: while there is one, any CPU may be its sibling.
    unplaced: Word,
}

impl Declared {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                used: Word::new(0),
                unplaced: Word::new(0),
            }
        }
    }

    /// The slots worth a look: no CPU above them was ever declared.
    pub(crate) fn used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        let used = self.used.load(Ordering::Acquire) as usize;
        slots.get(..used).unwrap_or(slots)
    }

    /// Whether the place of some CPU is not known.
    pub(crate) fn unplaced(&self) -> bool {
        self.unplaced.load(Ordering::Acquire) != 0
    }

    /// A CPU is about to be declared.
    pub(crate) fn note(&self, cpu: &mut impl CpuOps, number: usize) {
        if self.used.load(Ordering::Relaxed) <= number as u32 {
            publish(cpu, &self.used, number as u32 + 1);
        }
    }

    /// One more CPU has no known place.
    pub(crate) fn lose(&self, cpu: &mut impl CpuOps) {
        let unplaced = self.unplaced.load(Ordering::Relaxed);
        publish(cpu, &self.unplaced, unplaced.wrapping_add(1));
    }

    /// One fewer.
    pub(crate) fn find(&self, cpu: &mut impl CpuOps) {
        let unplaced = self.unplaced.load(Ordering::Relaxed);
        publish(cpu, &self.unplaced, unplaced.saturating_sub(1));
    }
}

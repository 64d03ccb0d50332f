//! What a rendezvous came to, counted by the boot CPU at its end.

use super::CacheSync;
use crate::atomic::Ordering;
use crate::rendezvous::slot::Slot;

/// What came of a rendezvous in which everybody finished.
#[must_use = "CPUs that are still out of sync are counted here"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Generation of the target.
    pub epoch: u32,
    /// CPUs that took part, the boot CPU too.
    pub cpus: u32,
    /// CPUs that differed from the target before.
    pub differed: u32,
    /// CPUs that are not in line now.
    pub out_of_sync: u32,
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// CPUs that are in line by their own account: all that may run were in the meeting.
    pub(super) fn counted(&self) -> u32 {
        let counted = |slot: &&Slot| slot.record.counted.load(Ordering::Relaxed) != 0;
        self.slots.iter().filter(counted).count() as u32
    }

    /// What came of the meeting `me` just led.
    pub(super) fn summary(&self, me: usize) -> Summary {
        let number = self.slot(me).map_or(0, Slot::summoned);
        let mut summary = Summary {
            epoch: self.target.online().epoch(),
            cpus: 0,
            differed: 0,
            out_of_sync: 0,
        };
        for line in self.report().cpus() {
            let Ok(slot) = self.slot(line.cpu) else {
                continue;
            };
            if slot.summoned() != number {
                continue;
            }
            let acted = slot.record.acted.load(Ordering::Relaxed) == number;
            let differed = line.outcome.is_some_and(|o| !o.changes.is_empty());
            summary.cpus += 1;
            summary.differed += u32::from(acted && differed);
            summary.out_of_sync += u32::from(!line.in_sync());
        }
        summary
    }
}

//! What a rendezvous came to, counted by the boot CPU at its end.

use core::fmt;

use super::CacheSync;
use crate::atomic::Ordering;
use crate::error::Error;
use crate::rendezvous::slot::Slot;
use crate::report::{Gist, NO_RENDEZVOUS, Path};

/// What came of a rendezvous in which everybody finished.
#[must_use = "CPUs that are still out of sync are counted here"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Generation of the target.
    pub epoch: u32,
    /// CPUs that took part, the boot CPU too. Whether that is everybody, only the kernel knows: one that
    /// was given up is in none.
    pub cpus: u32,
    /// CPUs that differed from the target when they were compared. In a [`CacheSync::change`] that is in
    /// their turn: a thread whose sibling has just written the registers they share differs no more.
    pub differed: u32,
    /// CPUs that are not in line now.
    pub out_of_sync: u32,
}

impl Summary {
    /// Whether every CPU is in line after it.
    ///
    /// # Errors
    /// [`Error::OutOfSync`].
    pub const fn ok(self) -> Result<(), Error> {
        match self.out_of_sync {
            0 => Ok(()),
            count => Err(Error::OutOfSync { count }),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            epoch,
            cpus,
            differed,
            out_of_sync,
        } = self;
        let s = if *cpus == 1 { "" } else { "s" };
        write!(
            f,
            "target {epoch}: rendezvous of {cpus} CPU{s}, {differed} differed, {out_of_sync} out of sync"
        )
    }
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// What came of the rendezvous `me` just led.
    pub(super) fn summary(&self, me: usize) -> Summary {
        let number = self.slot(me).map_or(NO_RENDEZVOUS, Slot::summoned);
        let mut summary = Summary {
            epoch: self.target.epoch(),
            cpus: 0,
            differed: 0,
            out_of_sync: 0,
        };
        for slot in self.declared.used(&self.slots) {
            let gist = Gist::from_word(slot.record.gist.load(Ordering::Acquire));
            let never_ran = matches!(gist.path(), None | Some(Path::NeverCame));
            let gone = never_ran && !slot.state().may_run();
            if slot.summoned() == number && !gone {
                let acted = gist.rendezvous() == number;
                summary.cpus += 1;
                summary.differed += u32::from(acted && !gist.changes().is_empty());
                summary.out_of_sync += u32::from(!slot.holds(summary.epoch));
            }
        }
        summary
    }
}

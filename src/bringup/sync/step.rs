//! What one CPU does in a rendezvous: it is compared before it says that it has arrived, and acts when
//! its turn comes.

use super::compared::Compared;
use super::in_line::Consent;
use super::{CacheSync, Decided};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::policy::AmdFixed;
use crate::rendezvous::Meeting;
use crate::rendezvous::hold::Core;
use crate::report::{Outcome, Path};

/// What a meeting is about, as the word of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Work {
    /// CPUs that checked in or were postponed are brought in line; the others wait.
    Resync = 1,
    /// Every CPU is brought in line with a new target.
    Change = 2,
    /// Every CPU is compared; nothing is written.
    Check = 3,
}

impl Work {
    const fn from_word(word: u32) -> Self {
        match word {
            1 => Self::Resync,
            2 => Self::Change,
            _ => Self::Check,
        }
    }
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Whether this CPU is compared before it says that it has arrived: not with a target that is yet
    /// to come, nor where any CPU may turn out to share this one's registers, nor where reading them
    /// means setting a bit of SYSCFG, which siblings might share too.
    pub(super) fn compares_early(&self, decided: &Decided, meeting: &Meeting<'_>) -> bool {
        let exposes = decided.platform.amd && decided.policy.amd_fixed == AmdFixed::SaveDramBits;
        let work = Work::from_word(self.gate.work.load(Ordering::Acquire));
        let wanted = work == Work::Check || (work == Work::Resync && self.pending(meeting.me));
        wanted && !meeting.one_by_one() && !exposes
    }

    /// Whether a CPU is not in line, or in line with an earlier target.
    fn pending(&self, number: usize) -> bool {
        self.slot(number).is_ok_and(|slot| {
            slot.record.pending.load(Ordering::Relaxed) != 0
                || slot.record.epoch.load(Ordering::Relaxed) != self.target.online().epoch()
        })
    }

    /// This CPU's share of the work.
    pub(super) fn step(&self, cpu: &mut impl CpuOps, compared: &mut Compared<'_>) -> Option<Work> {
        let work = Work::from_word(self.gate.work.load(Ordering::Acquire));
        let consent = &mut Consent::<fn(usize)>::Meeting;
        match work {
            Work::Resync if !self.pending(compared.me.number) => {}
            Work::Resync | Work::Change => {
                let me = compared.me;
                let _ = self.bring_in_line(cpu, me, Some(compared), consent);
            }
            Work::Check => self.check_step(cpu, compared),
        }
        Some(work)
    }

    /// The check-only step: writes down what differs.
    fn check_step(&self, cpu: &mut impl CpuOps, compared: &mut Compared<'_>) {
        let Ok(slot) = self.slot(compared.me.number) else {
            return;
        };
        let windows = Core::of(&self.slots, compared.me.number).sibling_windows();
        let looked = if compared.fresh && windows == compared.windows {
            Ok(())
        } else {
            self.compare(cpu, compared)
        };
        let (mut changes, error) = match looked {
            Ok(()) => compared.found(),
            Err(error) => (Changes::empty(), Some(error)),
        };
        let routing = &compared.me.decided.routing;
        if routing.differs(&routing.capture_same(cpu)) {
            changes |= Changes::ROUTING;
        }
        let counted = slot.record.counted.load(Ordering::Relaxed) != 0;
        let path = match (error, changes.is_empty()) {
            (Some(_), _) => Path::Failed,
            (None, true) => Path::InSync,
            (None, false) => Path::Differs,
        };
        let outcome = Outcome {
            path,
            changes,
            error,
            ticks: compared.ticks,
        };
        outcome.store(cpu, &slot.record, slot.summoned());
        slot.record.pending.store(
            u32::from(!counted || path != Path::InSync),
            Ordering::Relaxed,
        );
    }
}

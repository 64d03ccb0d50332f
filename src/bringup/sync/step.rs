//! What one CPU does in a rendezvous: it is compared before it says that it has arrived, and acts when
//! its turn comes.

use super::CacheSync;
use super::compared::Compared;
use super::in_line::Consent;
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::policy::AmdFixed;
use crate::report::{Outcome, Path};

/// What a rendezvous is about, as the word of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Work {
    /// Every CPU is brought in line with the target.
    Resync = 1,
    /// The same, with a new target.
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
    /// What the rendezvous that was called is about.
    pub(super) fn work(&self) -> Work {
        Work::from_word(self.gate.work.load(Ordering::Acquire))
    }

    /// Compares a CPU before it says that it has arrived: not with a target that is yet to come, nor
    /// where reading it means setting a bit of SYSCFG, which siblings might share.
    pub(super) fn compare_early(&self, cpu: &mut impl CpuOps, compared: &mut Compared<'_>) {
        let decided = compared.decided;
        let exposes = decided.platform.amd && decided.policy.amd_fixed == AmdFixed::SaveDramBits;
        if self.work() != Work::Change && !exposes {
            // What cannot be read now is tried again, and reported, when this CPU's turn comes.
            let _ = self.compare(cpu, compared);
        }
    }

    /// This CPU's share of the work.
    pub(super) fn step(&self, cpu: &mut impl CpuOps, compared: &mut Compared<'_>) {
        if self.work() == Work::Check {
            self.check_step(cpu, compared);
        } else {
            let _ = self.bring_in_line(cpu, compared, Consent::<fn(usize)>::Rendezvous);
        }
    }

    /// The check-only step: writes down what differs.
    fn check_step(&self, cpu: &mut impl CpuOps, compared: &mut Compared<'_>) {
        let Some(slot) = compared.peers.mine() else {
            return;
        };
        let (mut changes, error) = match self.compare(cpu, compared) {
            Ok(()) => (compared.plan.changes(), compared.plan.mtrr_error()),
            Err(error) => (Changes::empty(), Some(error)),
        };
        let routing = &compared.decided.routing;
        if routing.differs(&routing.capture_same(cpu)) {
            changes |= Changes::ROUTING;
        }
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
        outcome.store(&slot.record, slot.summoned());
        let held = (path == Path::InSync).then_some(compared.epoch);
        slot.record
            .epoch
            .store(held.unwrap_or(0), Ordering::Relaxed);
    }
}

//! One CPU beside its copy of the target: what was found, before anything is done about it.

use super::{CacheSync, Decided, arrival};
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::Error;
use crate::program::{Plan, holds};
use crate::rendezvous::hold::Core;
use crate::snapshot::Snapshot;

/// The CPU that runs this.
#[derive(Clone, Copy, Debug)]
pub(super) struct Me<'a> {
    pub(super) decided: &'a Decided,
    pub(super) number: usize,
}

/// This CPU, what it was found to have, and its copy of the target: on its stack until it has acted.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    pub(super) me: Me<'a>,
    pub(super) want: Snapshot,
    /// Of the copy.
    pub(super) epoch: u32,
    pub(super) plan: Plan,
    /// Whether the plan is still to be acted on.
    pub(super) fresh: bool,
    /// Windows its siblings had opened before.
    pub(super) windows: u32,
    /// What the comparison took.
    pub(super) ticks: u64,
}

impl<'a> Compared<'a> {
    /// The groups in which this CPU differs from the target, and why its MTRRs were left alone.
    pub(super) fn found(&self) -> (Changes, Option<Error>) {
        (self.plan.changes(), self.plan.mtrr_error())
    }

    /// Not compared yet.
    pub(super) fn nothing(me: Me<'a>) -> Self {
        let platform = &me.decided.platform;
        Self {
            me,
            want: Snapshot::empty(platform.phys_bits),
            epoch: 0,
            plan: Plan::nothing(platform),
            fresh: false,
            windows: 0,
            ticks: 0,
        }
    }
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Copies the target and compares this CPU with it; only reads. Best before it says that it has
    /// arrived in a meeting: there all CPUs do so at once, and no sibling has its caches off yet.
    #[inline(never)]
    pub(super) fn compare(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
    ) -> Result<(), Error> {
        let since = cpu.rdtsc();
        compared.epoch = self.copy_target(compared.me.decided, cpu, &mut compared.want)?;
        self.look(cpu, compared)?;
        compared.fresh = true;
        compared.ticks = cpu.rdtsc().saturating_sub(since);
        Ok(())
    }

    /// The epoch of the target, if this CPU's registers hold it, MTRRCAP too: nothing is copied. `None`
    /// when anything may differ; only reads. No sibling opens a window meanwhile: it needs the word of
    /// this CPU, which gives it only where it stands still.
    pub(super) fn holds_already(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
    ) -> Result<Option<u32>, Error> {
        let Decided {
            platform, policy, ..
        } = me.decided;
        let mut held = false;
        let epoch = self.target.read(cpu, policy.bounds.finish, |cpu, words| {
            held = holds(cpu, words, platform, policy);
        });
        let epoch = epoch.ok_or(Error::TargetBusy)?;
        Ok(held.then_some(epoch))
    }

    /// Compares this CPU with the copy of the target; only reads.
    pub(super) fn look(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
    ) -> Result<(), Error> {
        let Decided {
            platform, policy, ..
        } = compared.me.decided;
        let slot = self.slot(compared.me.number)?;
        compared.windows = Core::of(&self.slots, compared.me.number).sibling_windows();
        let Compared { want, plan, .. } = compared;
        plan.look(cpu, want, platform, policy, arrival(slot))
    }
}

//! One CPU beside its copy of the target: what was found, before anything is done about it.

use super::{CacheSync, Decided, arrival};
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::Error;
use crate::program::Plan;
use crate::rendezvous::hold::Core;
use crate::snapshot::Snapshot;

/// What this CPU was found to have, beside its copy of the target: on its stack until it has acted.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) want: Snapshot,
    /// Of the copy.
    pub(super) epoch: u32,
    pub(super) plan: Plan,
    /// Whether the plan is still to be acted on.
    pub(super) fresh: bool,
    /// Windows its siblings had opened before.
    pub(super) windows: u32,
    /// What an early comparison took.
    pub(super) ticks: u64,
}

impl Compared {
    /// The groups in which this CPU differs from the target, and why its MTRRs were left alone.
    pub(super) fn found(&self) -> (Changes, Option<Error>) {
        (self.plan.changes(), self.plan.mtrr_error())
    }

    pub(super) fn nothing(decided: &Decided) -> Self {
        let platform = &decided.platform;
        Self {
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
    /// Copies the target and compares this CPU with it; only reads. Before it says that it has
    /// arrived in a meeting: there all CPUs do so at once, and no sibling has its caches off yet.
    #[inline(never)]
    pub(super) fn compare_early(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
        compared: &mut Compared,
    ) -> Result<(), Error> {
        let since = cpu.rdtsc();
        compared.epoch = self.copy_target(decided, cpu, &mut compared.want)?;
        self.look(decided, cpu, number, compared)?;
        compared.fresh = true;
        compared.ticks = cpu.rdtsc().saturating_sub(since);
        Ok(())
    }

    /// Compares this CPU with the copy of the target; only reads.
    pub(super) fn look(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
        compared: &mut Compared,
    ) -> Result<(), Error> {
        let Decided {
            platform, policy, ..
        } = decided;
        let slot = self.slot(number)?;
        compared.windows = Core::of(&self.slots, number).sibling_windows();
        compared.plan = Plan::nothing(platform);
        let Compared { want, plan, .. } = compared;
        plan.look(cpu, want, platform, policy, arrival(slot))
    }
}

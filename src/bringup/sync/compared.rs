//! One CPU beside its copy of the target: what was found, before anything is done about it.

use super::{CacheSync, Decided};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::error::Error;
use crate::program::Plan;
use crate::regs::MtrrCap;
use crate::rendezvous::peers::Peers;
use crate::rendezvous::slot::{CAP_READ, RAN, WindowCount};
use crate::snapshot::Snapshot;

/// This CPU, what it was found to have, and its copy of the target: on its stack until it has acted.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    pub(super) decided: &'a Decided,
    pub(super) peers: Peers<'a>,
    pub(super) want: Snapshot,
    /// Of the copy; 0: not compared yet.
    pub(super) epoch: u32,
    pub(super) plan: Plan,
    /// Windows its siblings had opened before it was compared.
    pub(super) windows: WindowCount,
    /// What the comparison took.
    pub(super) ticks: u64,
}

impl<'a> Compared<'a> {
    /// Not compared yet.
    pub(super) fn nothing(decided: &'a Decided, peers: Peers<'a>) -> Self {
        let platform = &decided.platform;
        Self {
            decided,
            peers,
            want: Snapshot::empty(platform.phys_bits),
            epoch: 0,
            plan: Plan::nothing(platform),
            windows: WindowCount::default(),
            ticks: 0,
        }
    }

    /// Compares this CPU with the copy of the target; only reads. MTRRCAP once since reset.
    pub(super) fn look(&mut self, cpu: &mut impl CpuOps) -> Result<(), Error> {
        let Decided {
            platform, policy, ..
        } = self.decided;
        let word = self.peers.mine().map(|slot| &slot.record.cap);
        let known = word.map_or(RAN, |word| word.load(Ordering::Relaxed));
        let cap = MtrrCap::from_raw(u64::from(known & !(CAP_READ | RAN)));
        let cap = (known & CAP_READ != 0).then_some(cap);
        let looked = self.plan.look(cpu, &self.want, platform, policy, cap);
        let read = self.plan.cap().map_or(0, |cap| cap.raw() as u32 | CAP_READ);
        if let Some(word) = word {
            word.store(read | RAN, Ordering::Relaxed);
        }
        if known & RAN != 0 {
            self.plan.ran_before();
        }
        looked
    }
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Copies the target and compares this CPU with it, unless that was done and neither the target
    /// moved nor a sibling had a window since; only reads. Best before this CPU says that it has
    /// arrived in a rendezvous: there all CPUs do so at once, and no sibling has its caches off yet.
    pub(super) fn compare(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
    ) -> Result<(), Error> {
        let windows = compared.peers.sibling_windows();
        let epoch = self.target.epoch();
        if compared.epoch == epoch && compared.windows == windows {
            return Ok(());
        }
        let since = cpu.rdtsc();
        if compared.epoch != epoch {
            let platform = &compared.decided.platform;
            compared.want.fill_from(self.target.words());
            compared.want.phys_bits = platform.phys_bits;
            compared.want.set_width(platform.phys_bits_here(cpu));
        }
        // Not compared, if that fails.
        compared.epoch = 0;
        compared.windows = windows;
        compared.look(cpu)?;
        compared.epoch = epoch;
        compared.ticks = cpu.rdtsc().saturating_sub(since);
        Ok(())
    }
}

//! One CPU: compare, and do the cheapest that is safe now.
//!
//! Owns the choice between acting, asking siblings and postponing; the instructions are
//! [`crate::program`]'s, the asking is the rendezvous'.

use super::compared::Compared;
use super::{CacheSync, Decided};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::{Error, Left};
use crate::policy::CacheFlush;
use crate::program::{Need, turn_caching_on};
use crate::report::{Gist, NO_RENDEZVOUS, Outcome, Path};

/// Who makes sure that no sibling runs anything but a wait loop during a window.
#[derive(Debug)]
pub(super) enum Consent<K> {
    /// This CPU asks them; the callback sends an interrupt.
    Ask(K),
    /// A rendezvous: they wait in it.
    Rendezvous,
    /// Nobody else runs.
    Alone,
}

/// The boot CPU while no AP has been started.
pub(super) const ALONE: Consent<fn(usize)> = Consent::Alone;

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Brings this CPU in line with the target, in one attempt, and writes down what became of it.
    pub(super) fn bring_in_line<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        mut consent: Consent<K>,
    ) -> Outcome {
        let since = cpu.rdtsc();
        let mut outcome = Outcome {
            path: Path::InSync,
            changes: Changes::empty(),
            error: None,
            ticks: compared.ticks,
        };
        let Some(slot) = compared.peers.mine() else {
            return outcome;
        };
        let record = &slot.record;
        outcome.error = self.settle(cpu, compared, &mut consent, &mut outcome).err();
        if let Some(error) = outcome.error {
            outcome.path = path_without(error);
            // Whatever it has now is what it runs with; and its siblings' caches hang on this too.
            turn_caching_on(cpu);
        }
        // After an error a sibling's window may still be open: then this flush counts for none.
        let flushed = compared
            .peers
            .flush_after_siblings(cpu, outcome.error.is_none());
        if flushed && outcome.path == Path::InSync {
            outcome.path = Path::Flush;
        }
        // As reset leaves it, and as is best: an AP that comes so does not differ in that.
        if matches!(consent, Consent::Ask(_)) {
            outcome.changes.remove(Changes::CACHING);
        }
        outcome.ticks += cpu.rdtsc().saturating_sub(since);
        let holds = outcome.error.map_or(compared.epoch, |_| 0);
        let held = record.epoch.load(Ordering::Relaxed);
        let well = Gist::from_word(record.gist.load(Ordering::Relaxed)).is_without_error();
        record.epoch.store(holds, Ordering::Relaxed);
        let rendezvous = match consent {
            // What it needed when it came in line is told until it needs something again.
            Consent::Rendezvous if held == holds && outcome.path == Path::InSync && well => {
                return outcome;
            }
            Consent::Rendezvous => slot.summoned(),
            Consent::Ask(_) | Consent::Alone => NO_RENDEZVOUS,
        };
        outcome.store(record, rendezvous);
        outcome
    }

    /// Compares, asks the siblings if that is needed, and acts.
    fn settle<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let peers = compared.peers;
        let Consent::Ask(kick) = consent else {
            return self.act(cpu, compared, outcome);
        };
        // One that never comes out of its window may open it at any moment: what this CPU reads then
        // may not be what it keeps.
        peers.hold_point(cpu)?;
        self.compare(cpu, compared)?;
        outcome.changes = compared.plan.changes();
        if compared.plan.need() != Need::Window {
            return self.act(cpu, compared, outcome);
        }
        peers.enter(cpu, kick)?;
        let result = self.act(cpu, compared, outcome);
        peers.leave();
        result
    }

    /// Does the cheapest that brings this CPU from what is found to the target. After a window
    /// everything is compared once more: firmware may have written another register meanwhile.
    fn act(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        self.compare(cpu, compared)?;
        let Decided {
            platform, policy, ..
        } = compared.decided;
        let (want, need) = (&compared.want, compared.plan.need());
        outcome.changes |= compared.plan.changes();
        outcome.path = path_of(need);
        if let (Need::Window, Some(slot)) = (need, compared.peers.mine()) {
            let plan = &compared.plan;
            let promised =
                policy.cache_flush == CacheFlush::SkipWithSelfSnoop && platform.self_snoop;
            let tells = !promised && plan.takes_away(want, platform, policy);
            slot.handshake.windows.open(tells);
        }
        // SAFETY: the target is the boot CPU's own state or was checked; siblings are held, wait in a
        // rendezvous or do not run, as `consent` says.
        let applied = unsafe { compared.plan.apply(cpu, want, platform, policy) };
        if need != Need::Window {
            return applied;
        }
        match applied.map_err(Error::left) {
            Ok(()) | Err(Some(Left::UnusedPairs)) => {
                compared.look(cpu)?;
                let confirmed = confirm(compared);
                if confirmed.map_err(Error::left) == Err(Some(Left::Altered)) {
                    confirmed
                } else {
                    applied.and(confirmed)
                }
            }
            Err(Some(Left::RolledBack)) if !restored(cpu, compared) => {
                applied.map_err(|error| error.with_left(Left::Altered))
            }
            // Who wrote instead may have written the target.
            Err(Some(Left::Altered)) => {
                let looked = compared.look(cpu);
                looked.and_then(|()| confirm(compared)).or(applied)
            }
            Err(_) => applied,
        }
    }
}

/// What a CPU that has just written and read back the target differs in all the same.
fn confirm(compared: &Compared<'_>) -> Result<(), Error> {
    let left = Left::Altered;
    if let Some(Error::ReadFault { msr }) = compared.plan.mtrr_error() {
        return Err(Error::ReadBackFault { msr, left });
    }
    let delta = compared.plan.delta(&compared.want);
    let (write, left) = match (delta.first_in_force(), delta.outside().next()) {
        (Some(write), _) => (write, left),
        (None, Some(write)) => (write, Left::UnusedPairs),
        (None, None) => return Ok(()),
    };
    let (msr, value) = (write.msr, write.value);
    Err(Error::WriteIgnored { msr, value, left })
}

/// Whether this CPU has what it was found to have, after a window that failed.
#[inline(never)] // what it finds is not to be on the stack of those whose windows work
fn restored(cpu: &mut impl CpuOps, compared: &Compared<'_>) -> bool {
    let mut now = Compared::nothing(compared.decided, compared.peers);
    now.want = compared.want;
    now.look(cpu).is_ok() && now.plan.has_same_registers(&compared.plan)
}

/// The path of a CPU that is not in line: postponed, where acting would not have been safe.
const fn path_without(error: Error) -> Path {
    match error {
        Error::TopologyUnknown | Error::SiblingsNotHeld { .. } | Error::SiblingStuck { .. } => {
            Path::Postponed
        }
        _ => Path::Failed,
    }
}

const fn path_of(need: Need) -> Path {
    match need {
        Need::Nothing => Path::InSync,
        Need::CachingOn => Path::CachingOn,
        Need::SysCfg => Path::SysCfg,
        Need::UnusedPairs => Path::UnusedPairs,
        Need::Pat => Path::Pat,
        Need::Window => Path::Window,
    }
}

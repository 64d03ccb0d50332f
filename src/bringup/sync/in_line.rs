//! One CPU: copy the target, compare, and do the cheapest that is safe now.
//!
//! Owns the choice between acting, asking siblings and postponing; the instructions are
//! [`crate::program`]'s, the asking is the rendezvous'.

use super::compared::{Compared, Me};
use super::verdict::{dearer, path_of, postpones, still_torn, telling};
use super::{CacheSync, Decided};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::{Error, Left};
use crate::policy::Bounds;
use crate::program::{Need, flush_tlb, turn_caching_on};
use crate::regs::MsrAddr;
use crate::rendezvous::hold::{Core, Held, Refused, enter, hold_point, leave};
use crate::rendezvous::slot::{Slot, publish};
use crate::report::{NO_MEETING, Outcome, Path};

/// Who makes sure that no sibling runs anything but a wait loop during a window.
#[derive(Debug)]
pub(super) enum Consent<K> {
    /// This CPU asks them; the callback sends an interrupt.
    Ask(K),
    /// A rendezvous: they wait in it.
    Meeting,
    /// Nobody else runs.
    Alone,
}

/// The boot CPU while no AP has been started.
pub(super) const fn nobody_else() -> Consent<fn(usize)> {
    Consent::Alone
}

/// Attempts before a register that does not keep its value counts as a failure: firmware may have
/// written it between the comparison and the write.
const ATTEMPTS: u32 = 3;

/// Times a CPU copies the target again because it moved.
const COPIES: u32 = 16;

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Brings this CPU in line with the target, counts it online if it was starting, and writes
    /// down what became of it.
    pub(super) fn bring_in_line<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
        compared: Option<&mut Compared<'_>>,
        consent: &mut Consent<K>,
    ) -> Outcome {
        let since = cpu.rdtsc();
        let before = compared.as_ref().map_or(0, |compared| compared.ticks);
        let mut outcome = Outcome {
            path: Path::Failed,
            changes: Changes::empty(),
            error: None,
            ticks: 0,
        };
        let number = me.number;
        let Ok(slot) = self.slot(number) else {
            return outcome;
        };
        let result = self.settle(cpu, me, compared, consent, &mut outcome);
        let unlike = Error::ReadFault {
            msr: MsrAddr::MTRRCAP,
        };
        // A CPU of another kind is of another kind the next time too.
        let alike = !matches!(result, Err(Error::CapDiffers { .. })) && result != Err(unlike);
        slot.record
            .compared
            .store(u32::from(alike), Ordering::Relaxed);
        if result.is_ok() {
            self.flush_after_siblings(cpu, number, &mut outcome.path);
        } else {
            // A sibling's window may still be open: what is cached under its types until it closes has
            // to be dropped after it, so this flush counts for none.
            self.drop_after_siblings(cpu, slot, number);
        }
        outcome.error = result.err();
        outcome.path = match outcome.error {
            None => outcome.path,
            Some(error) if postpones(error) => Path::Postponed,
            Some(_) => Path::Failed,
        };
        let pending = u32::from(outcome.error.is_some());
        slot.record.pending.store(pending, Ordering::Relaxed);
        if pending != 0 && matches!(consent, Consent::Meeting) {
            // It may have been in line with an earlier target; the leader counts at the end.
            slot.record.counted.store(0, Ordering::Relaxed);
        }
        outcome.ticks = cpu.rdtsc().saturating_sub(since).saturating_add(before);
        let meeting = match consent {
            Consent::Meeting => slot.summoned(),
            Consent::Ask(_) | Consent::Alone => NO_MEETING,
        };
        outcome.store(cpu, &slot.record, meeting);
        outcome
    }

    /// Compares and acts until this CPU holds the target of the epoch it comes online with.
    fn settle<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
        mut compared: Option<&mut Compared<'_>>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.slot(me.number)?;
        outcome.path = Path::InSync;
        for _ in 0..COPIES {
            let epoch = match compared.as_deref_mut() {
                Some(compared) => self.act(cpu, compared, consent, outcome)?,
                None => self.act_by_itself(cpu, me, consent, outcome)?,
            };
            slot.record.epoch.store(epoch, Ordering::Relaxed);
            let counted = slot.record.counted.load(Ordering::Relaxed) != 0;
            // In a meeting the epoch cannot move, and the leader counts everybody at its end.
            let by_itself = matches!(consent, Consent::Ask(_)) && !counted;
            // A locked instruction: this CPU's MTRRs are in line by now.
            if !by_itself || self.target.join(epoch).is_ok() {
                slot.record.counted.store(1, Ordering::Relaxed);
                return Ok(());
            }
        }
        Err(Error::TargetBusy)
    }

    /// Turns caching on, if that is all this CPU needs, or compares it in full and acts: the epoch of
    /// the target it holds then.
    fn act_by_itself<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<u32, Error> {
        self.yield_to_siblings(cpu, me, consent)?;
        let Some(epoch) = self.holds_already(cpu, me)? else {
            return self.compare_and_act(cpu, me, consent, outcome);
        };
        if turn_caching_on(cpu) {
            outcome.changes |= Changes::CACHING;
            outcome.path = dearer(outcome.path, Path::CachingOn);
        }
        Ok(epoch)
    }

    #[inline(never)] // what is compared is not to be on the stack of those who hold the target
    fn compare_and_act<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<u32, Error> {
        self.act(cpu, &mut Compared::nothing(me), consent, outcome)
    }

    /// Acts on what was found, if that is still what counts, or compares anew: the epoch of the target
    /// this CPU holds then.
    fn act<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<u32, Error> {
        if !compared.fresh || compared.epoch != self.target.online().epoch() {
            compared.fresh = false;
            let decided = compared.me.decided;
            compared.epoch = self.copy_target(decided, cpu, &mut compared.want)?;
        }
        self.act_until_kept(cpu, compared, consent, outcome)?;
        Ok(compared.epoch)
    }

    /// Acts on what was found, again if a register did not keep its value.
    fn act_until_kept<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        let mut torn = false;
        let mut failed = None;
        loop {
            if !compared.fresh {
                let looked = self.look_undisturbed(cpu, compared, consent);
                looked.map_err(|error| telling(error, torn, failed))?;
                if torn && compared.plan.found_enabled() {
                    // A sibling has put the registers right that it shares.
                    (torn, failed) = (false, None);
                }
            }
            let result = self.act_once(cpu, compared, consent, outcome);
            compared.fresh = false;
            let Err(error @ Error::WriteIgnored { left, .. }) = result else {
                return result.map_err(|error| telling(error, torn, failed));
            };
            // What a later attempt puts back is then only the torn map, with E clear.
            torn = left == Left::Torn || (torn && left != Left::UnusedPairs);
            let error = still_torn(error, torn);
            if attempt == ATTEMPTS {
                return Err(error);
            }
            failed = Some(error);
            attempt += 1;
        }
    }

    /// Compares this CPU, when no sibling asks it to stand still.
    fn look_undisturbed<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        consent: &Consent<K>,
    ) -> Result<(), Error> {
        self.yield_to_siblings(cpu, compared.me, consent)?;
        let looked = self.look(cpu, compared);
        looked.inspect_err(|_| _ = turn_caching_on(cpu))
    }

    /// Does the cheapest that brings this CPU from what was found to the target.
    fn act_once<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        consent: &mut Consent<K>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let Compared { me, want, plan, .. } = compared;
        let Decided {
            platform, policy, ..
        } = me.decided;
        let (slot, core) = (self.slot(me.number)?, Core::of(&self.slots, me.number));
        outcome.changes |= plan.changes();
        let asks = matches!(consent, Consent::Ask(_)) && plan.need() == Need::Window;
        if asks {
            self.ask(cpu, core, consent, &policy.bounds)?;
        }
        if core.sibling_windows() != compared.windows {
            plan.renew(cpu, want, platform, policy);
            outcome.changes |= plan.changes();
        }
        outcome.path = dearer(outcome.path, path_of(plan.need()));
        if plan.need() == Need::Window {
            let windows = slot.handshake.windows.load(Ordering::Relaxed);
            publish(cpu, &slot.handshake.windows, windows.wrapping_add(1));
        }
        let result = plan.apply(cpu, want, platform, policy);
        if asks {
            leave(core, cpu);
        }
        result
    }

    /// Stands still for a sibling that came first and may be waiting for this CPU. One that never comes
    /// out of its window may open it at any moment: what this CPU reads then may not be what it keeps.
    fn yield_to_siblings<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        me: Me<'_>,
        consent: &Consent<K>,
    ) -> Result<(), Error> {
        if matches!(consent, Consent::Ask(_)) {
            let core = Core::of(&self.slots, me.number);
            let held = hold_point(core, cpu, &me.decided.policy.bounds, usize::MAX);
            if let Held::SiblingStuck(cpu) = held {
                return Err(Error::SiblingStuck { cpu });
            }
        }
        Ok(())
    }

    /// Makes sure no sibling runs during the window that follows.
    fn ask<K: FnMut(usize)>(
        &self,
        cpu: &mut impl CpuOps,
        core: Core<'_>,
        consent: &mut Consent<K>,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        let Consent::Ask(kick) = consent else {
            return Ok(());
        };
        enter(core, cpu, &self.declared, bounds, kick).map_err(|refused| match refused {
            Refused::NoSlot | Refused::Unplaced => Error::TopologyUnknown,
            Refused::NoAnswer(cpu) => Error::SiblingsNotHeld { cpu },
        })
    }

    /// A sibling's window may have changed registers this CPU shares: translations it made before
    /// or meanwhile carry old types, whatever the comparison said.
    pub(super) fn flush_after_siblings(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        path: &mut Path,
    ) {
        let Ok(slot) = self.slot(number) else {
            return;
        };
        if let Some(windows) = self.drop_after_siblings(cpu, slot, number) {
            slot.record.windows_seen.store(windows, Ordering::Relaxed);
            *path = dearer(*path, Path::Flush);
        }
    }

    /// Flushes the TLB if siblings had windows since it was last flushed for them: how many they had.
    fn drop_after_siblings(
        &self,
        cpu: &mut impl CpuOps,
        slot: &Slot,
        number: usize,
    ) -> Option<u32> {
        let windows = Core::of(&self.slots, number).sibling_windows();
        let moved = slot.record.windows_seen.load(Ordering::Relaxed) != windows;
        moved.then(|| {
            flush_tlb(cpu);
            windows
        })
    }
}

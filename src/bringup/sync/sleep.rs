//! Suspend and resume: what is saved, and what the boot CPU gets back.
//!
//! Owns the phase of the machine; the registers are brought in line as on any other CPU.

use core::fmt;

use super::in_line::ALONE;
use super::{CacheSync, RUNNING, SUSPENDED};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::{Changes, Delta};
use crate::error::Error;
use crate::rendezvous::CpuState;
use crate::report::Outcome;
use crate::snapshot::Snapshot;

/// What the boot CPU's registers said when the machine was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Groups in which they differed from the target: firmware or the kernel wrote them behind
    /// this crate's back. They are the target now, unless the machine was suspended already.
    pub changes: Changes,
    /// Generation of the target that will be restored.
    pub epoch: u32,
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {} saved", self.epoch)?;
        if self.changes.is_empty() {
            return Ok(());
        }
        write!(f, ", the boot CPU differed in {}", self.changes)
    }
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Saves the boot CPU's registers before the machine loses them. On the boot CPU `me`, after the
    /// APs were stopped or are about to be. What they were is forgotten by [`CacheSync::boot_resume`]: they
    /// need not be declared offline.
    ///
    /// In a machine that is suspended already (a resume that was given up, a second suspend), and
    /// where the boot CPU could not be brought in line or has its MTRRs off, the saved state is kept.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::NotBootCpu`],
    /// [`Error::ApicIdDiffers`], [`Error::ReadFault`], [`Error::Busy`] while a rendezvous is open or a
    /// CPU is starting: the machine is not suspended.
    pub fn suspend(&self, cpu: &mut impl CpuOps, me: usize) -> Result<Saved, Error> {
        let decided = self.decided()?;
        let boot = self.boot_cpu(decided, cpu, me)?;
        let mut others = self.declared.used(&self.slots).iter();
        if self.gate.open() || others.any(|slot| slot.state() == CpuState::Starting) {
            return Err(Error::Busy);
        }
        let (epoch, want) = self.target()?;
        let mut have = Snapshot::capture(cpu, &decided.platform, decided.policy.amd_fixed)?;
        have.hide_dram_bits(decided.policy.amd_fixed);
        let changes = Delta::between(&have, &want).changes();
        let mut saved = Saved { changes, epoch };
        let running = self.boot.phase.load(Ordering::Relaxed) == RUNNING;
        // A boot CPU that is itself out of line, or lost its MTRRs, is nobody's model.
        let sound = boot.record.epoch.load(Ordering::Relaxed) == epoch
            && (have.def_type.enabled() || !want.def_type.enabled());
        if running && sound && !changes.is_empty() {
            saved.epoch = self.target.replace(&have.to_words());
            // The boot CPU is what was saved: also if this suspend is taken back.
            boot.record.epoch.store(saved.epoch, Ordering::Relaxed);
        }
        self.boot.phase.store(SUSPENDED, Ordering::Release);
        Ok(saved)
    }

    /// Takes a suspend back that did not happen: no CPU lost anything.
    ///
    /// # Errors
    /// [`Error::NotSuspended`].
    pub fn suspend_aborted(&self) -> Result<(), Error> {
        let suspended = self.boot.phase.compare_exchange(SUSPENDED, RUNNING);
        suspended.map(|_| ()).map_err(|_| Error::NotSuspended)
    }

    /// Gives the boot CPU its registers back after it woke, and forgets all APs: they are absent
    /// until declared starting. On the boot CPU `me`, before any SIPI; interrupts as they are.
    ///
    /// A machine that slept without [`CacheSync::suspend`] does the same: it gets the target of before,
    /// without what was written to the boot CPU behind this crate's back.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::NotBootCpu`],
    /// [`Error::ApicIdDiffers`]; [`Error::Busy`] while a rendezvous is open: nothing was changed.
    /// When the registers cannot be restored the outcome carries the error and the machine is
    /// suspended: the saved state is not lost.
    ///
    /// # Safety
    /// No other CPU executes anything, but a wait for its SIPI.
    pub unsafe fn boot_resume(&self, cpu: &mut impl CpuOps, me: usize) -> Result<Outcome, Error> {
        let decided = self.decided()?;
        let boot = self.boot_cpu(decided, cpu, me)?;
        if self.gate.open() {
            return Err(Error::Busy);
        }
        self.boot.phase.store(SUSPENDED, Ordering::Release);
        boot.reset_by_sleep(CpuState::Running);
        let outcome = self.sync_alone(decided, cpu, me, ALONE);
        // With caches on: it may have woken without.
        let others = self.declared.used(&self.slots).iter().enumerate();
        for (_, slot) in others.filter(|(number, _)| *number != me) {
            slot.reset_by_sleep(CpuState::Absent);
        }
        self.recount_unplaced();
        if outcome.error.is_none() {
            self.boot.phase.store(RUNNING, Ordering::Release);
        }
        Ok(outcome)
    }
}

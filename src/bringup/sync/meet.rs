//! The rendezvous as the kernel sees it: resync, run-time change, check.

use log::Level;

use super::compared::Compared;
use super::step::Work;
use super::{CacheSync, Decided, RUNNING, Summary};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::{Changes, Delta};
use crate::error::Error;
use crate::program::masked;
use crate::rendezvous::peers::Peers;
use crate::rendezvous::{Agenda, Attendance, Late};
use crate::report::{NO_RENDEZVOUS, Outcome, Path};
use crate::snapshot::Snapshot;

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Compares every running CPU with the target, and brings those in line that differ: that checked
    /// in, were postponed, failed, or were written to since. All meet for it. Led by the boot CPU `me`;
    /// interrupts are masked throughout.
    ///
    /// `kick` makes a CPU call [`CacheSync::attend`] soon, by an interrupt. It must not overtake what
    /// this CPU wrote before: the write of an x2APIC's ICR is not ordered after earlier stores, so it
    /// needs `mfence; lfence` before it (Intel SDM 3A, "MSR Access in x2APIC Mode"). It is called
    /// again, at half the bound, for those that have not come.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Busy`], [`Error::NotInitialised`],
    /// [`Error::CpuOutOfRange`], [`Error::NotBootCpu`], [`Error::ApicIdDiffers`], [`Error::Suspended`]:
    /// nothing was changed on any CPU; a CPU that is missing for good has to be declared offline.
    /// [`Error::Stuck`]: all did what they were to do but those, and the siblings that wait for them.
    pub fn resync(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        kick: impl FnMut(usize),
    ) -> Result<Summary, Error> {
        self.lead(cpu, me, Work::Resync, kick, None)
    }

    /// Replaces the target, and brings every running CPU in line with it, all at once. `Ok` says that
    /// all finished; a CPU whose registers refuse keeps its old map and is counted:
    /// [`Summary::ok`] makes an error of that. To go back, change to the target of before.
    ///
    /// What a processor accepts is not refused: a target with its MTRRs off, or whose ranges overlap in
    /// a way the manuals leave undefined ([`crate::diagnose`] and [`crate::layout`] tell). Pairs above
    /// VCNT count for nothing.
    ///
    /// # Errors
    /// As for [`CacheSync::resync`]; [`Error::InvalidTarget`], [`Error::ForeignTarget`], and what
    /// [`Platform::mtrr_refused`](crate::platform::Platform::mtrr_refused) says, where MTRRs were to change,
    /// or [`Platform::pat_refused`](crate::platform::Platform::pat_refused), where the PAT was: nothing was
    /// changed on any CPU.
    ///
    /// # Safety
    /// The types are right for what is used under them, by address and through each slot of the PAT:
    /// above all, RAM whose users rely on the order of stores (all of Rust's, page tables) does not
    /// become write-combining, and no device becomes cacheable.
    /// [`layout::Edit`](crate::layout::Edit) refuses the first of what the map says is RAM.
    pub unsafe fn change(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        target: &Snapshot,
        kick: impl FnMut(usize),
    ) -> Result<Summary, Error> {
        let (_, now) = self.target()?;
        if let Some(part) = now.foreign(target) {
            return Err(Error::ForeignTarget { part });
        }
        if let Some(msr) = target.first_invalid() {
            return Err(Error::InvalidTarget { msr });
        }
        let changes = Delta::between(&now, target).changes();
        let platform = &self.decided()?.platform;
        let mtrrs = !Changes::PAT.contains(changes);
        let pat = changes.contains(Changes::PAT);
        let refused = platform.mtrr_refused.filter(|_| mtrrs);
        if let Some(refused) = refused.or(platform.pat_refused().filter(|_| pat)) {
            return Err(refused);
        }
        self.lead(cpu, me, Work::Change, kick, Some(target))
    }

    /// Compares every running CPU with the target, and its registers that only firmware sets with
    /// [`CacheSync::routing`]; writes nothing. CPUs that differ are in the report with
    /// [`Path::Differs`].
    ///
    /// # Errors
    /// As for [`CacheSync::resync`].
    pub fn check(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        kick: impl FnMut(usize),
    ) -> Result<Summary, Error> {
        self.lead(cpu, me, Work::Check, kick, None)
    }

    /// Stands still for a sibling that asks, as [`CacheSync::hold_point`] does, and takes part in the
    /// rendezvous that is open, if it wants this CPU; returns at once otherwise. All that the handler of
    /// the kick interrupt has to do; or in any loop the CPU waits in. Interrupts are masked until it is
    /// over.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::ApicIdDiffers`]: this CPU did not
    /// take part. [`Error::ArrivedTwice`]; [`Error::SiblingStuck`]: a sibling did not finish, and this CPU was
    /// left as it is. [`Error::Stuck`] with this CPU's own number: it
    /// arrived, then did not look until the rendezvous was over. The next one brings it in line.
    pub fn attend(&self, cpu: &mut impl CpuOps, number: usize) -> Result<Attendance, Error> {
        let decided = self.decided()?;
        let held = self.hold_point(cpu, number);
        if self.gate.called(self.peers(decided, number))?.is_some() {
            self.caller(decided, cpu, number)?;
        }
        let (attendance, _) = self.attended(decided, cpu, number);
        attendance.and_then(|attendance| held.map(|()| attendance))
    }

    /// [`CacheSync::attend`] for an AP that comes online: whether it was brought in line there.
    pub(super) fn attend_now(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
    ) -> bool {
        let (attended, work) = self.attended(decided, cpu, number);
        attended == Ok(Attendance::Done) && work != Work::Check
    }

    #[inline(never)] // one comparison at a time on the stack of those who call it
    fn attended(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
    ) -> (Result<Attendance, Error>, Work) {
        let peers = self.peers(decided, number);
        let called = self.gate.called(peers);
        // Before this CPU has arrived: once it is done, the next rendezvous may be about something else.
        let work = self.work();
        let number = match called {
            Ok(Some(number)) => number,
            Ok(None) => return (Ok(Attendance::NotNow), work),
            Err(twice) => return (Err(twice), work),
        };
        let attended = masked(cpu, |cpu| {
            let mut compared = Compared::nothing(decided, peers);
            self.compare_early(cpu, &mut compared);
            self.gate.attend(peers, cpu, number, |cpu, turn| {
                self.take_turn(cpu, &mut compared, turn);
            })
        });
        if let Err(Error::Stuck { .. }) = attended {
            self.left_behind(peers, Path::Postponed, None);
        }
        // Siblings may have had windows; after a missed turn one may still be open.
        peers.flush_after_siblings(cpu, attended == Ok(Attendance::Done));
        (attended, work)
    }

    /// This CPU's step, or what it means that a sibling did not finish before its turn came.
    fn take_turn(
        &self,
        cpu: &mut impl CpuOps,
        compared: &mut Compared<'_>,
        turn: Result<(), Error>,
    ) {
        match turn {
            Ok(()) => self.step(cpu, compared),
            Err(error) => self.left_behind(compared.peers, Path::Failed, Some(error)),
        }
    }

    /// Writes down that a rendezvous was carried out without this CPU: the next has to bring it in line.
    fn left_behind(&self, peers: Peers<'_>, path: Path, error: Option<Error>) {
        let outcome = Outcome {
            path,
            changes: Changes::empty(),
            error,
            ticks: 0,
        };
        if let Some(slot) = peers.mine() {
            slot.record.epoch.store(0, Ordering::Relaxed);
            outcome.store(&slot.record, NO_RENDEZVOUS);
        }
    }

    fn lead<C: CpuOps>(
        &self,
        cpu: &mut C,
        me: usize,
        work: Work,
        kick: impl FnMut(usize),
        target: Option<&Snapshot>,
    ) -> Result<Summary, Error> {
        let decided = self.decided()?;
        self.boot_cpu(decided, cpu, me)?;
        if self.boot.phase.load(Ordering::Acquire) != RUNNING {
            return Err(Error::Suspended);
        }
        let peers = self.peers(decided, me);
        let mut summary = None;
        let agenda = Agenda {
            work: work as u32,
            kick,
            // All that may run have arrived and wait.
            commit: || _ = target.map(|target| self.target.replace(&target.to_words())),
            step: |cpu: &mut C, turn| {
                self.take_turn(cpu, &mut Compared::nothing(decided, peers), turn);
            },
            close: || summary = Some(self.summary(me)),
        };
        let stuck = match self.gate.lead(peers, cpu, agenda) {
            Ok(stuck) => stuck,
            Err(error) => {
                log::warn!("{error}\n{}", self.report());
                return Err(error);
            }
        };
        peers.flush_after_siblings(cpu, true);
        let summary = summary.ok_or(Error::Busy)?;
        let well = summary.out_of_sync == 0 && stuck.count == 0;
        let level = if well { Level::Debug } else { Level::Warn };
        log::log!(level, "{}", self.report());
        match stuck {
            Late { count: 0, .. } => Ok(summary),
            Late { count, first } => Err(Error::Stuck { count, first }),
        }
    }
}

//! The rendezvous as the kernel sees it: resync, run-time change, check.

use super::compared::{Compared, Me};
use super::step::Work;
use super::{CacheSync, Decided, RUNNING, Summary};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::{Error, Fixture};
use crate::program::{flush_tlb, masked};
use crate::rendezvous::{Agenda, Attended, Meeting, NoMeeting, Stuck};
use crate::report::{NO_MEETING, Outcome, Path};
use crate::snapshot::Snapshot;

/// How this CPU's part in a rendezvous went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// There is none that wants this CPU.
    NotNow,
    /// It was called off; nothing was changed.
    CalledOff,
    /// This CPU did what it had to; its outcome is in the report.
    Done,
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Brings every CPU in line that checked in, was postponed or failed; all running CPUs meet
    /// for it. Led by the boot CPU `me`; interrupts are masked throughout.
    ///
    /// `kick` makes a CPU call [`CacheSync::attend`] soon, by an interrupt.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Busy`], [`Error::BootCpuSilent`], [`Error::NotInitialised`],
    /// [`Error::CpuOutOfRange`], [`Error::NotBootCpu`], [`Error::WrongPhase`] while suspended: nothing
    /// was changed on any CPU; a CPU that is missing for good has to be declared offline.
    /// [`Error::Stuck`]: all did what they were to do but those, and the siblings that wait for them.
    pub fn resync(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        kick: impl FnMut(usize),
    ) -> Result<Summary, Error> {
        self.lead(cpu, me, Work::Resync, kick, None)
    }

    /// Replaces the target, and brings every running CPU in line with it, all at once.
    ///
    /// What a processor accepts is not refused: a target with its MTRRs off, or whose ranges overlap in
    /// a way the manuals leave undefined ([`crate::diagnose`] and [`crate::layout`] tell). Pairs above
    /// VCNT count for nothing.
    ///
    /// # Errors
    /// As for [`CacheSync::resync`]; [`Error::InvalidTarget`], [`Error::ForeignTarget`]: nothing was
    /// changed on any CPU.
    pub fn change(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        target: &Snapshot,
        kick: impl FnMut(usize),
    ) -> Result<Summary, Error> {
        let (_, now) = self.target(cpu)?;
        if let Some(part) = foreign(&now, target) {
            return Err(Error::ForeignTarget { part });
        }
        if let Some(msr) = target.first_invalid() {
            return Err(Error::InvalidTarget { msr });
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

    /// Takes part in the rendezvous that is open, if it wants this CPU; returns at once otherwise.
    /// In the handler of the kick interrupt, or in any loop the CPU waits in. Interrupts are masked
    /// until the rendezvous is over.
    ///
    /// # Errors
    /// [`Error::ArrivedTwice`]; [`Error::BootCpuSilent`]; [`Error::SiblingStuck`]: a sibling did
    /// not finish, and this CPU was left as it is. [`Error::Stuck`] with this CPU's own number: it
    /// arrived, then did not look until the rendezvous was over. The next one brings it in line.
    pub fn attend(&self, cpu: &mut impl CpuOps, number: usize) -> Result<Attendance, Error> {
        let decided = self.decided()?;
        self.slot(number)?;
        match self.attended(decided, cpu, number).0 {
            Attended::NotNow => Ok(Attendance::NotNow),
            Attended::Aborted => Ok(Attendance::CalledOff),
            Attended::Done => Ok(Attendance::Done),
            Attended::Twice => Err(Error::ArrivedTwice { cpu: number }),
            Attended::LeaderSilent => Err(Error::BootCpuSilent),
            Attended::SiblingStuck(sibling) => Err(Error::SiblingStuck { cpu: sibling }),
            Attended::Missed => Err(Error::Stuck {
                count: 1,
                first: number,
            }),
        }
    }

    /// [`CacheSync::attend`] for an AP that comes online: whether it was brought in line there.
    pub(super) fn attend_now(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
    ) -> bool {
        let (attended, work) = self.attended(decided, cpu, number);
        attended == Attended::Done && work.is_some_and(|work| work != Work::Check)
    }

    /// Takes part; returns how that went, and what was done if its turn came.
    fn attended(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
    ) -> (Attended, Option<Work>) {
        let meeting = self.meeting(decided, number);
        if let Err(nothing) = self.gate.called(&meeting) {
            return (nothing, None);
        }
        let mut work = None;
        let attended = masked(cpu, |cpu| {
            let mut compared = Compared::nothing(Me { decided, number });
            if self.compares_early(decided, &meeting) {
                // What cannot be read now is tried again, and reported, when this CPU's turn comes.
                let _ = self.compare(cpu, &mut compared);
            }
            self.gate.attend(&meeting, cpu, |cpu, turn| match turn {
                Ok(()) => work = self.step(cpu, &mut compared),
                Err(sibling) => self.turn_missed(cpu, number, sibling),
            })
        });
        match attended {
            Attended::Done => self.flush_after_meeting(cpu, &meeting),
            Attended::Missed => {
                if self.left_behind(cpu, number, Path::Postponed, None) {
                    // Counted, so its MTRRs are on; and that meeting's leader has counted.
                    self.target.part();
                }
                flush_tlb(cpu);
            }
            // Siblings may have had windows, or may be in one: this flush counts for none of them.
            Attended::SiblingStuck(_) => flush_tlb(cpu),
            _ => {}
        }
        (attended, work)
    }

    /// A sibling did not finish before this CPU's turn came. The leader counts who is in line later.
    fn turn_missed(&self, cpu: &mut impl CpuOps, number: usize, sibling: usize) {
        let error = Error::SiblingStuck { cpu: sibling };
        let _ = self.left_behind(cpu, number, Path::Failed, Some(error));
    }

    /// Writes down that a meeting was carried out without this CPU: the next has to bring it in line.
    /// Returns whether it was counted as in line so far.
    fn left_behind(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        path: Path,
        error: Option<Error>,
    ) -> bool {
        let Ok(slot) = self.slot(number) else {
            return false;
        };
        let counted = slot.record.counted.load(Ordering::Relaxed) != 0;
        slot.record.counted.store(0, Ordering::Relaxed);
        let outcome = Outcome {
            path,
            changes: Changes::empty(),
            error,
            ticks: 0,
        };
        slot.record.pending.store(1, Ordering::Relaxed);
        outcome.store(cpu, &slot.record, NO_MEETING);
        counted
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
        self.expect_boot_cpu(me)?;
        if self.boot.phase.load(Ordering::Acquire) != RUNNING {
            return Err(Error::WrongPhase);
        }
        let meeting = self.meeting(decided, me);
        let mut summary = None;
        let agenda = Agenda {
            work: work as u32,
            kick,
            commit: |cpu: &mut C| match target {
                Some(target) => {
                    // All that hold the old target have arrived and wait.
                    let seen = self.target.online();
                    self.target.replace(cpu, &target.to_words(), seen).is_ok()
                }
                None => true,
            },
            step: |cpu: &mut C, turn| {
                let leader = Me {
                    decided,
                    number: me,
                };
                match turn {
                    Ok(()) => _ = self.step(cpu, &mut Compared::nothing(leader)),
                    Err(sibling) => self.turn_missed(cpu, me, sibling),
                }
            },
            close: |_: &mut C| {
                let (counts, counted) = self.summary(me);
                // Nobody comes or goes: those that are done still wait.
                self.target.recount(counted);
                summary = Some(counts);
            },
        };
        let met = self.gate.lead(&meeting, cpu, agenda);
        if met.is_ok() {
            self.flush_after_meeting(cpu, &meeting);
        }
        let summary = match (met, summary) {
            (Ok(Stuck { count: 0, .. }), Some(summary)) => summary,
            (Ok(Stuck { count, first }), _) => {
                log::warn!("{}", self.report());
                return Err(Error::Stuck { count, first });
            }
            (Err(NoMeeting::Missing { count, first }), _) => {
                return Err(Error::Missing { count, first });
            }
            (Err(NoMeeting::Busy | NoMeeting::Refused), _) => return Err(Error::Busy),
            (Err(NoMeeting::Abandoned), _) => return Err(Error::BootCpuSilent),
        };
        if summary.out_of_sync == 0 {
            log::debug!("{}", self.report());
        } else {
            log::warn!("{}", self.report());
        }
        Ok(summary)
    }

    /// Siblings may have changed registers this CPU shares; where places are not known, anybody.
    fn flush_after_meeting(&self, cpu: &mut impl CpuOps, meeting: &Meeting<'_>) {
        let mut path = Path::InSync;
        self.flush_after_siblings(cpu, meeting.me, &mut path);
        if meeting.one_by_one() && path == Path::InSync {
            flush_tlb(cpu);
        }
    }
}

/// What a new target may not change: it is the machine's, not the kernel's.
fn foreign(now: &Snapshot, target: &Snapshot) -> Option<Fixture> {
    let syscfg = now.syscfg != target.syscfg || now.fixed_dram_bits != target.fixed_dram_bits;
    let parts = [
        (now.phys_bits != target.phys_bits, Fixture::Width),
        (now.cap != target.cap, Fixture::Mtrrcap),
        (now.pat.is_some() != target.pat.is_some(), Fixture::Pat),
        (syscfg, Fixture::Syscfg),
        (now.top_mem2 != target.top_mem2, Fixture::TopMem2),
    ];
    parts
        .into_iter()
        .find(|(bad, _)| *bad)
        .map(|(_, part)| part)
}

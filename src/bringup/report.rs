//! The outcome of each CPU, and the one table the boot CPU prints.
//!
//! Owns how results are stored and shown; refuses to know how they came about. A CPU writes its
//! outcome as plain words into its own line; the boot CPU reads all of them once.

mod gist;
mod words;

use core::fmt;

pub(crate) use self::gist::{Gist, NO_RENDEZVOUS};
use crate::atomic::Ordering;
use crate::delta::Changes;
use crate::error::Error;
use crate::rendezvous::slot::{Record, Slot};
use crate::rendezvous::{CpuState, Gate};

/// What a CPU did to hold the target state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Path {
    /// Nothing: every register compared equal.
    InSync = 1,
    /// Registers compared equal; the TLB was flushed because a sibling had a window.
    Flush = 2,
    /// Caching was turned on; registers compared equal.
    CachingOn = 3,
    /// Only pairs that are not in use were written.
    UnusedPairs = 4,
    /// The PAT was written and the TLB flushed.
    Pat = 5,
    /// MTRRs were written with caches off.
    Window = 6,
    /// Left to the next rendezvous, because the sync would not have been safe now.
    Postponed = 7,
    /// This CPU could not be brought in line: the error says why.
    Failed = 8,
    /// Came online and waits for the rendezvous, as the policy wants it.
    CheckedIn = 9,
    /// Was only compared, and differs.
    Differs = 10,
    /// AMD's MtrrFixDramModEn (SYSCFG bit 19), which firmware had left set, was cleared.
    SysCfg = 11,
    /// Was declared starting, and offline before it ran: it did not come, or not as itself.
    NeverCame = 12,
}

impl Path {
    const ALL: [Self; 12] = [
        Self::InSync,
        Self::Flush,
        Self::CachingOn,
        Self::UnusedPairs,
        Self::Pat,
        Self::Window,
        Self::Postponed,
        Self::Failed,
        Self::CheckedIn,
        Self::Differs,
        Self::SysCfg,
        Self::NeverCame,
    ];

    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InSync => "in_sync",
            Self::Flush => "flush",
            Self::CachingOn => "caching_on",
            Self::UnusedPairs => "unused_pairs",
            Self::Pat => "pat",
            Self::Window => "window",
            Self::Postponed => "postponed",
            Self::Failed => "failed",
            Self::CheckedIn => "checked_in",
            Self::Differs => "differs",
            Self::SysCfg => "syscfg",
            Self::NeverCame => "never_came",
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|path| *path as u8 == byte)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How one CPU was brought in line, or why not: [`Outcome::error`] says whether it is.
#[must_use = "a CPU that could not be brought in line says so here"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it did.
    pub path: Path,
    /// In which groups it differed before.
    pub changes: Changes,
    /// Why it is not in line, for [`Path::Failed`] and [`Path::Postponed`].
    pub error: Option<Error>,
    /// Ticks of its time-stamp counter from the first read to the last write.
    pub ticks: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, differed in {}", self.path, self.changes)?;
        match self.error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl Outcome {
    /// Whether the CPU is in line, or waits for a rendezvous as the policy wants it.
    ///
    /// # Errors
    /// [`Outcome::error`], where it is one.
    pub const fn ok(self) -> Result<(), Error> {
        match self.error {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Of a CPU that was given up.
    pub(crate) const NEVER_CAME: Self = Self {
        path: Path::NeverCame,
        changes: Changes::empty(),
        error: None,
        ticks: 0,
    };

    /// Writes it into a CPU's own line, with the number of the rendezvous in which this CPU was compared,
    /// or [`NO_RENDEZVOUS`].
    pub(crate) fn store(&self, record: &Record, rendezvous: u32) {
        let (kind, left, msr, value) = self.error.map_or((0, 0, 0, 0), words::from_error);
        let gist = Gist::of(self, kind, left, rendezvous);
        let serial = record.serial.load(Ordering::Relaxed);
        // Odd while the words are written, as a reader's second look shows.
        record
            .serial
            .store(serial.wrapping_add(1), Ordering::Release);
        record.gist.store(gist.word(), Ordering::Release);
        record.error_msr.store(u64::from(msr), Ordering::Release);
        record.error_value.store(value, Ordering::Release);
        record.ticks.store(self.ticks, Ordering::Release);
        record
            .serial
            .store(serial.wrapping_add(2), Ordering::Release);
    }

    /// Reads it from a CPU's line; `None` when that CPU has no outcome yet.
    pub(crate) fn load(record: &Record) -> Option<Self> {
        /// A CPU writes its line in a few stores: more looks than it takes.
        const LOOKS: u32 = 64;
        let mut found = None;
        for _ in 0..LOOKS {
            let serial = record.serial.load(Ordering::Acquire);
            found = Self::decode(record);
            if serial & 1 == 0 && record.serial.load(Ordering::Relaxed) == serial {
                break;
            }
        }
        found
    }

    fn decode(record: &Record) -> Option<Self> {
        let gist = Gist::from_word(record.gist.load(Ordering::Acquire));
        Some(Self {
            path: gist.path()?,
            changes: gist.changes(),
            error: words::to_error(
                gist.error_kind(),
                gist.left(),
                record.error_msr.load(Ordering::Acquire) as u32,
                record.error_value.load(Ordering::Acquire),
            ),
            ticks: record.ticks.load(Ordering::Acquire),
        })
    }
}

/// One CPU's line of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReport {
    /// Its number.
    pub cpu: usize,
    /// Where it is in its life.
    pub state: CpuState,
    /// What became of it; `None` before its first sync.
    pub outcome: Option<Outcome>,
    /// Caches-off windows it has opened since the boot CPU was initialised.
    pub windows: u32,
    /// Times it stood still for a sibling.
    pub holds: u32,
    /// Ticks it stood still for siblings.
    pub held_ticks: u64,
    /// It came to a rendezvous that was not called off, and did not finish there, so far: it may be
    /// stuck, with caches off too, and [`CpuReport::outcome`] is of before.
    pub unfinished: bool,
    /// It did not come to the last rendezvous, which was called off because of it and its like.
    pub missing: bool,
    /// It is known to hold the target of now.
    holds_target: bool,
}

impl CpuReport {
    /// Whether it is known to hold the target of now.
    #[must_use]
    pub const fn in_sync(&self) -> bool {
        self.holds_target && !self.unfinished
    }
}

/// What every CPU did last. Iterates the CPUs that were ever declared; prints one table for the
/// machine, whose length does not grow with the number of CPUs.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    slots: &'a [Slot],
    gate: &'a Gate,
    /// Of the target.
    epoch: u32,
}

impl<'a> Report<'a> {
    pub(crate) const fn of(slots: &'a [Slot], gate: &'a Gate, epoch: u32) -> Self {
        Self { slots, gate, epoch }
    }

    /// One item per CPU that was ever declared, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = CpuReport> + Clone + use<'a> {
        let Self { gate, epoch, .. } = *self;
        self.slots
            .iter()
            .enumerate()
            .map(move |(cpu, slot)| CpuReport {
                cpu,
                state: slot.state(),
                // Started once more, it has not yet failed to come.
                outcome: Outcome::load(&slot.record)
                    .filter(|outcome| outcome.path != Path::NeverCame || !slot.state().may_run()),
                windows: slot.handshake.windows.count().opened(),
                holds: slot.record.holds.load(Ordering::Relaxed),
                held_ticks: slot.record.held.load(Ordering::Relaxed),
                unfinished: slot
                    .unfinished()
                    .is_some_and(|rendezvous| !gate.called_off(rendezvous)),
                missing: slot
                    .awaited()
                    .is_some_and(|rendezvous| gate.called_off(rendezvous)),
                holds_target: slot.holds(epoch),
            })
            .filter(|line| line.outcome.is_some() || line.state != CpuState::Absent)
    }

    /// CPUs that are declared starting or running and not known to hold the target state.
    pub fn out_of_sync(&self) -> impl Iterator<Item = CpuReport> + Clone + use<'a> {
        self.cpus()
            .filter(|line| line.state.may_run() && !line.in_sync())
    }

    fn numbers(
        &self,
        f: &mut fmt::Formatter<'_>,
        label: &str,
        wanted: impl Fn(&CpuReport) -> bool,
    ) -> fmt::Result {
        let mut numbers = self.cpus().filter(|line| wanted(line)).map(|line| line.cpu);
        let Some(mut start) = numbers.next() else {
            return Ok(());
        };
        write!(f, "\n  {label:<14}")?;
        let mut end = start;
        let mut separator = "";
        loop {
            let next = numbers.next();
            if next == Some(end + 1) {
                end += 1;
                continue;
            }
            f.write_str(separator)?;
            separator = ",";
            if start == end {
                write!(f, "{start}")?;
            } else {
                write!(f, "{start}-{end}")?;
            }
            match next {
                Some(number) => (start, end) = (number, number),
                None => return Ok(()),
            }
        }
    }
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cpus()).finish()
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.cpus().count();
        let off = self.out_of_sync().count();
        write!(
            f,
            "memory types of {total} CPUs, {off} out of sync; CPUs by path:"
        )?;
        for path in Path::ALL {
            self.numbers(f, path.name(), |line| {
                !line.unfinished && line.outcome.is_some_and(|outcome| outcome.path == path)
            })?;
        }
        self.numbers(f, "not finished", |line| line.unfinished)?;
        self.numbers(f, "missing", |line| line.missing)?;
        let no_outcome = |line: &CpuReport| !line.unfinished && line.outcome.is_none();
        self.numbers(f, "parked", |line| {
            no_outcome(line) && line.state == CpuState::Parked
        })?;
        self.numbers(f, "not up yet", |line| {
            no_outcome(line) && line.state != CpuState::Parked
        })?;
        if self.cpus().any(|line| differed(&line, Changes::all())) {
            f.write_str("\n CPUs that differed, by group:")?;
        }
        for (group, name) in Changes::NAMES {
            self.numbers(f, name, |line| differed(line, group))?;
        }
        let errors = || {
            self.cpus()
                .filter_map(|line| Some((line.cpu, line.outcome?.error?)))
        };
        for (cpu, error) in errors() {
            let first = errors().find(|(_, other)| *other == error);
            if first.is_some_and(|(first, _)| first == cpu) {
                write!(f, "\n {error}:")?;
                self.numbers(f, "", |line| {
                    line.outcome
                        .is_some_and(|outcome| outcome.error == Some(error))
                })?;
            }
        }
        Ok(())
    }
}

fn differed(line: &CpuReport, groups: Changes) -> bool {
    line.outcome
        .is_some_and(|outcome| outcome.changes.intersects(groups))
}

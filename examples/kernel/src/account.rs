//! What a round came to, in plain words that survive a restart (`keep.rs`): what every CPU had before the crate looked at it, and
//! what all of them have to have since.

use crate::caching::{self, BOOT};
use crate::percpu::{self, MAX_CPUS, SLOTS};
use crate::regs::RegFile;
use crate::rounds::BootCpu;
use core::fmt;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::MtrrCap;
use mtrr_pat::snapshot::Snapshot;

/// Different register files that there is room for.
const MOST_STATES: usize = 16;
/// In `of`: one that there was no room for.
const OTHER: u8 = u8::MAX;

/// How far the round has come.
pub const ASLEEP: u32 = 1;
pub const AWAKE: u32 = 2;
pub const DONE: u32 = 3;

/// Nothing but numbers: any bytes are one, and a checksum tells whether they mean anything.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Account {
    pub stage: u32,
    /// 0 is the boot, others follow a sleep.
    pub round: u32,
    cpus: u32,
    bits: u32,
    /// Registers that are not as they should be after all, and things that failed.
    pub wrong: u32,
    /// Registers that were not as they should be before, on how many CPUs.
    pub lost: u32,
    pub losers: u32,
    states: u32,
    before: [RegFile; MOST_STATES],
    of: [u8; MAX_CPUS],
    pub now: RegFile,
}

impl Account {
    pub const EMPTY: Self = Self {
        stage: 0,
        round: 0,
        cpus: 0,
        bits: 0,
        wrong: 0,
        lost: 0,
        losers: 0,
        states: 0,
        before: [RegFile::EMPTY; MOST_STATES],
        of: [OTHER; MAX_CPUS],
        now: RegFile::EMPTY,
    };

    /// Fills it in, once all CPUs are up and compared.
    pub fn take(&mut self, round: u32, boot: &BootCpu) {
        self.round = round;
        self.cpus = percpu::count() as u32;
        self.bits = caching::phys_bits();
        self.now = *caching::wanted();
        (self.states, self.lost, self.losers) = (0, 0, 0);
        for (n, slot) in SLOTS.iter().enumerate().take(percpu::count()) {
            let before = match n {
                BOOT => &boot.before,
                // SAFETY: CPU `n` is online, and writes it before that only.
                _ => unsafe { &*slot.before.get() },
            };
            let lost = before.diff(&self.now).registers() as u32;
            self.lost += lost;
            self.losers += u32::from(lost != 0);
            self.of[n] = self.state(before);
        }
    }

    /// Number of a state like this one, added if there is none.
    fn state(&mut self, registers: &RegFile) -> u8 {
        let known = &self.before[..self.states as usize];
        let alike = |other: &RegFile| other.diff(registers).registers() == 0;
        if let Some(n) = known.iter().position(alike) {
            return n as u8;
        }
        let Some(free) = self.before.get_mut(self.states as usize) else {
            return OTHER;
        };
        *free = *registers;
        self.states += 1;
        self.states as u8 - 1
    }

    pub fn cpus(&self) -> usize {
        (self.cpus as usize).min(MAX_CPUS)
    }

    pub fn bits(&self) -> PhysBits {
        PhysBits::new(self.bits as u8).unwrap_or(PhysBits::MIN)
    }

    /// The different states that CPUs came with, and who did.
    pub fn states(&self) -> impl Iterator<Item = (&RegFile, Members<'_>)> {
        let states = (self.states as usize).min(MOST_STATES);
        (0..states).map(|n| {
            (
                &self.before[n],
                Members {
                    of: &self.of[..self.cpus()],
                    state: n as u8,
                },
            )
        })
    }

    /// All CPUs.
    pub fn everybody(&self) -> Members<'static> {
        Members {
            of: &[0; MAX_CPUS][..self.cpus()],
            state: 0,
        }
    }

    /// CPUs that came with yet another state, which was not kept.
    pub fn others(&self) -> usize {
        let members = Members {
            of: &self.of[..self.cpus()],
            state: OTHER,
        };
        members.count(0)
    }

    /// What CPU `n` came with, as the crate has it.
    pub fn snapshot_before(&self, n: usize) -> Option<Snapshot> {
        self.before
            .get(usize::from(*self.of.get(n)?))
            .map(|registers| self.snapshot(registers))
    }

    pub fn snapshot(&self, registers: &RegFile) -> Snapshot {
        let like = Snapshot {
            cap: (registers.cap != 0).then_some(MtrrCap::from_raw(registers.cap)),
            pat: (registers.pat != 0).then_some(Pat::from_raw(registers.pat)),
            ..Snapshot::empty(self.bits())
        };
        registers.snapshot(&like)
    }
}

/// Some CPUs, by number. Written as `0,2-5`; more than six runs end in `+` and how many CPUs follow.
pub struct Members<'a> {
    of: &'a [u8],
    state: u8,
}

impl Members<'_> {
    /// First and last of each run of numbers.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let is = |n: usize| self.of.get(n) == Some(&self.state);
        let starts = (0..self.of.len()).filter(move |&n| is(n) && (n == 0 || !is(n - 1)));
        starts.map(move |start| {
            let after = (start..=self.of.len()).find(|&n| !is(n));
            (start, after.map_or(start, |after| after - 1))
        })
    }

    /// How many CPUs are in the runs after the first few.
    fn count(&self, skip: usize) -> usize {
        let runs = self.runs().skip(skip);
        runs.map(|(first, last)| last - first + 1).sum()
    }
}

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let mut comma = "";
        for (first, last) in self.runs().take(SHOWN) {
            write!(f, "{comma}{first}")?;
            if last != first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        let more = self.count(SHOWN);
        if more != 0 {
            write!(f, "+{more}")?;
        }
        Ok(())
    }
}

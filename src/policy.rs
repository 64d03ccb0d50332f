//! What the kernel asks for: early or deferred, which PAT, which flushes, how long to wait.
//!
//! Typed values; a command line on top of them.

mod words;

use core::num::NonZeroU64;
use core::time::Duration;

pub use self::words::PolicyError;
use crate::pat::Pat;

/// When an AP that came up gets the boot CPU's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// At once, on its own, as the first thing it does; safe with siblings running (they are held).
    Early,
    /// All together, after the last one is online.
    Deferred,
}

/// Which PAT all CPUs get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatChoice {
    /// The one the boot CPU has.
    Keep,
    /// This layout.
    Layout(Pat),
}

/// Whether WBINVD is executed when MTRRs change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheFlush {
    /// Where the change takes cacheability away from some address or PAT slot, twice; always on
    /// processors that do not say they snoop themselves, or say so wrongly (errata).
    ///
    /// One risk is left: lines that firmware cached under a map it then replaced without a flush.
    WhenNeeded,
    /// Always, twice, as the manuals' procedure says.
    Always,
    /// Not on processors that say they snoop themselves, models with errata excepted. Unsafe where
    /// memory goes from cacheable to uncachable.
    SkipWithSelfSnoop,
}

/// Whether WBINVD is executed when only the PAT changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatFlush {
    /// When a slot goes from a cacheable type to another that is not.
    WhenUncached,
    /// Never: the kernel promises that no page table used such a slot.
    Never,
}

/// What is done about the RdMem and WrMem bits of AMD's fixed ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdFixed {
    /// Only the types are compared and written; RdMem and WrMem stay as they are on each CPU.
    AsFound,
    /// SYSCFG bit 19 is set for the reads and writes, so that the bits survive S3. Not done on
    /// hosts with secure nested paging.
    SaveDramBits,
}

/// How long a CPU waits for others. Measured with its own time-stamp counter, whose rate is
/// [`Policy::tsc_hz`], else what CPUID says; where neither says one between 10 MHz and 100 GHz, it is taken
/// to be 4 GHz: on a slower one it waits longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The boot CPU, for all CPUs to arrive at a rendezvous. Past it nothing is changed.
    pub gather: Duration,
    /// An AP, for its siblings to be held. Past it the AP is postponed.
    pub hold: Duration,
    /// Anybody, for one CPU to finish what it does with caches off. Past it that CPU is named.
    pub finish: Duration,
}

/// [`Bounds`] in ticks of a time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) gather: u64,
    pub(crate) hold: u64,
    pub(crate) finish: u64,
}

impl Bounds {
    /// A second, a tenth of a second and ten seconds.
    pub const DEFAULT: Self = Self {
        gather: Duration::from_secs(1),
        hold: Duration::from_millis(100),
        finish: Duration::from_secs(10),
    };

    /// The shortest that is taken: a healthy CPU may need as long for an interrupt.
    pub const LEAST: Duration = Duration::from_micros(10);

    /// The name of a bound that no healthy CPU can keep.
    #[must_use]
    pub fn too_short(&self) -> Option<&'static str> {
        let all = [
            ("gather", self.gather),
            ("hold", self.hold),
            ("finish", self.finish),
        ];
        let short = all.into_iter().find(|(_, bound)| *bound < Self::LEAST);
        short.map(|(name, _)| name)
    }

    /// In ticks of a counter of this rate; of the fastest there is, where it is not known, or is none
    /// that a processor has: nobody is to wait for ever, or not at all, for a digit in CPUID.
    pub(crate) fn in_ticks(self, hz: Option<NonZeroU64>) -> Ticks {
        const FAST: u64 = 4_000_000_000;
        const SLOWEST: u64 = 10_000_000;
        const FASTEST: u64 = 100_000_000_000;
        let hz = hz.map_or(FAST, NonZeroU64::get);
        let hz = if (SLOWEST..=FASTEST).contains(&hz) {
            hz
        } else {
            FAST
        };
        let ticks = |bound: Duration| {
            let part = u64::from(bound.subsec_micros()).saturating_mul(hz) / 1_000_000;
            bound.as_secs().saturating_mul(hz).saturating_add(part)
        };
        Ticks {
            gather: ticks(self.gather),
            hold: ticks(self.hold),
            finish: ticks(self.finish),
        }
    }
}

/// Everything the kernel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Early or deferred.
    pub resync: Resync,
    /// Which PAT all CPUs get.
    pub pat: PatChoice,
    /// WBINVD when MTRRs change.
    pub cache_flush: CacheFlush,
    /// WBINVD when only the PAT changes.
    pub pat_flush: PatFlush,
    /// AMD's RdMem and WrMem bits.
    pub amd_fixed: AmdFixed,
    /// Whether write-combining may be had (`nowc`): for the table of [`crate::reserve`].
    pub write_combining: WriteCombining,
    /// How long to wait.
    pub bounds: Bounds,
    /// Ticks of the time-stamp counter in a second, where the kernel knows better than CPUID.
    pub tsc_hz: Option<NonZeroU64>,
}

/// Whether write-combining may be had at all.
///
/// Cores that write much to write-combining memory can slow down every other core of the die, so
/// a machine's owner may want none (`nowc` on the command line).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WriteCombining {
    /// Requests for WC get WC.
    #[default]
    Allowed,
    /// Requests for WC get UC-. An MTRR range of type WC still makes that WC: the grant says so.
    Refused,
}

impl Policy {
    /// Early, the PAT left as the boot CPU has it, caches flushed where the change needs it.
    pub const DEFAULT: Self = Self {
        resync: Resync::Early,
        pat: PatChoice::Keep,
        cache_flush: CacheFlush::WhenNeeded,
        pat_flush: PatFlush::WhenUncached,
        amd_fixed: AmdFixed::AsFound,
        write_combining: WriteCombining::Allowed,
        bounds: Bounds::DEFAULT,
        tsc_hz: None,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

//! The question: a wanted map and the machine it is for.

use super::costs::Rule;
use super::count;
use super::error::LayoutError;
use super::knapsack;
use super::options::{DefaultType, FixedRanges, Unlisted};
use super::plan::{Fewest, Losses, Lost, Outcome, Plan};
use super::region::{self, Region, Want};
use super::scratch::{Scratch, check_scratch};
use super::verify;
use crate::memtype::MemType;
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MtrrCap, SysCfg};
use crate::snapshot::Snapshot;

/// An [`Outcome`] whose plan is elsewhere: plans are large, and stacks small.
enum Answer {
    Exact,
    Relaxed(Lost),
    Impossible { need: usize, have: usize },
}

impl Answer {
    /// The copies this makes must not be in a frame below the check.
    #[inline(never)]
    const fn outcome(self, plan: &Plan) -> Result<Outcome, LayoutError> {
        Ok(match self {
            Self::Exact => Outcome::Exact(*plan),
            Self::Relaxed(lost) => Outcome::Relaxed { plan: *plan, lost },
            Self::Impossible { need, have } => Outcome::Impossible { need, have },
        })
    }
}

/// A wanted map and the machine it is for: the question.
///
/// Regions must be sorted and must not overlap; [`RegionMap`](super::RegionMap) makes such a
/// slice out of anything. Any number of regions is answered, with no heap, bounded stack and
/// without recursion.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub(super) regions: &'a [Region],
    pub(super) bits: PhysBits,
    registers: usize,
    keep_free: usize,
    pub(super) default: DefaultType,
    pub(super) unlisted: Unlisted,
    pub(super) fixed: FixedRanges,
    pub(super) forced_wb_end: u64,
    pub(super) has_wc: bool,
}

impl<'a> Wanted<'a> {
    /// A map for a machine with so many variable ranges (VCNT) and address bits.
    ///
    /// The default type is free, unlisted addresses are to be uncachable, the fixed ranges off.
    #[must_use]
    pub const fn new(regions: &'a [Region], bits: PhysBits, registers: usize) -> Self {
        Self {
            regions,
            bits,
            registers,
            keep_free: 0,
            default: DefaultType::Free,
            unlisted: Unlisted::Uncachable,
            fixed: FixedRanges::Off,
            forced_wb_end: 0,
            has_wc: true,
        }
    }

    /// A map for the machine a snapshot is of: its width, count of ranges, fixed ranges, WC
    /// support and forced WB below TOP_MEM2.
    #[must_use]
    pub const fn on(snapshot: &Snapshot, regions: &'a [Region]) -> Self {
        let mut wanted = Self::new(regions, snapshot.phys_bits, snapshot.variable_count());
        if snapshot.has_fixed() && snapshot.def_type.fixed_enabled() {
            wanted.fixed = FixedRanges::On;
        }
        if let Some(cap) = snapshot.cap {
            wanted.has_wc = cap.contains(MtrrCap::WC);
        }
        if let Some(syscfg) = snapshot.syscfg
            && syscfg.contains(SysCfg::MTRR_TOM2_EN)
            && syscfg.contains(SysCfg::TOM2_FORCE_WB)
        {
            wanted = wanted.forced_wb_below(snapshot.top_mem2);
        }
        wanted
    }

    /// Leaves so many of the variable ranges unused.
    #[must_use]
    pub const fn keep_free(mut self, registers: usize) -> Self {
        self.keep_free = registers;
        self
    }

    /// Says who picks the default type.
    #[must_use]
    pub const fn default_type(mut self, default: DefaultType) -> Self {
        self.default = default;
        self
    }

    /// Says whether the fixed ranges decide below 1 MiB.
    #[must_use]
    pub const fn fixed_ranges(mut self, fixed: FixedRanges) -> Self {
        self.fixed = fixed;
        self
    }

    /// Says what addresses are that no region lists.
    #[must_use]
    pub const fn unlisted(mut self, unlisted: Unlisted) -> Self {
        self.unlisted = unlisted;
        self
    }

    /// Says that the default type is WB between 4 GiB and this address: AMD, TOP_MEM2, with
    /// MtrrTom2En and Tom2ForceMemTypeWB set in SYSCFG. Bits below 8 MiB do not count.
    ///
    /// Source: AMD APM 2, "Top of Memory", "System Configuration Register (SYSCFG)".
    #[must_use]
    pub const fn forced_wb_below(mut self, top_mem2: u64) -> Self {
        let end = top_mem2 & 0x000f_ffff_ff80_0000;
        self.forced_wb_end = if end < self.bits.end() {
            end
        } else {
            self.bits.end()
        };
        self
    }

    /// Says that the processor has no WC type ([`MtrrCap::WC`] clear).
    #[must_use]
    pub const fn without_write_combining(mut self) -> Self {
        self.has_wc = false;
        self
    }

    /// How many registers a plan may use.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.registers.saturating_sub(self.keep_free)
    }

    /// The fewest registers with which every byte gets its type, for each default type.
    ///
    /// The number of registers available does not matter, nor does [`Wanted::default_type`].
    ///
    /// # Errors
    /// [`LayoutError::Region`], [`LayoutError::TooManyRegisters`],
    /// [`LayoutError::NoWriteCombining`]: the question is flawed.
    pub fn fewest(&self) -> Result<Fewest, LayoutError> {
        self.check_strict()?;
        Ok(count::fewest(self, Rule::Strict))
    }

    /// The fewest registers with which every byte gets its type.
    ///
    /// [`Outcome::Exact`] or [`Outcome::Impossible`], never [`Outcome::Relaxed`]. Uses less than
    /// 8 KiB of stack.
    ///
    /// # Errors
    /// As [`Wanted::fewest`].
    pub fn plan(&self) -> Result<Outcome, LayoutError> {
        self.check_strict()?;
        let mut plan = Plan::empty(self.bits);
        let answer = self.fill_exactly(&mut plan)?;
        answer.outcome(&plan)
    }

    /// The exact plan where it fits, else the one that loses least.
    ///
    /// Lost bytes are those that get another type than wanted. The least of them at
    /// [`Priority::High`](super::Priority::High) is sought, then at `Normal`, then at `Low`, then
    /// the fewest registers. What may be lost: anything may become UC; MMIO nothing else; RAM may
    /// swap WB, WT and WP, and WC for WB. RAM wanted UC stays UC. `Impossible` comes out only
    /// with a default type given under which even that does not fit.
    ///
    /// The scratch has [`scratch_len`](super::scratch_len) words or more; more makes it faster.
    ///
    /// # Errors
    /// As [`Wanted::fewest`], but a WC that the processor lacks is a loss; and
    /// [`LayoutError::ShortScratch`].
    pub fn plan_least_damage(&self, scratch: &mut [Scratch]) -> Result<Outcome, LayoutError> {
        self.check()?;
        check_scratch(self.available(), self.bits, scratch)?;
        let mut plan = Plan::empty(self.bits);
        let answer = self.fill(&mut plan, scratch)?;
        answer.outcome(&plan)
    }

    fn fill_exactly(&self, plan: &mut Plan) -> Result<Answer, LayoutError> {
        if let Err(need) = count::plan(self, plan) {
            let have = self.available();
            return Ok(Answer::Impossible { need, have });
        }
        plan.sort();
        verify::strict(self, plan)?;
        Ok(Answer::Exact)
    }

    fn fill(&self, plan: &mut Plan, scratch: &mut [Scratch]) -> Result<Answer, LayoutError> {
        let have = self.available();
        if let Answer::Exact = self.fill_exactly(plan)? {
            return Ok(Answer::Exact);
        }
        let Some(lost) = knapsack::plan(self, have, scratch, plan) else {
            let need = self.best(&count::fewest(self, Rule::Lenient)).1;
            return Ok(Answer::Impossible { need, have });
        };
        plan.sort();
        verify::lenient(self, plan, &lost)?;
        Ok(Answer::Relaxed(lost))
    }

    /// What a plan for this map gives up: the runs of bytes with another type than wanted.
    #[must_use]
    pub fn losses(&self, plan: &Plan) -> Losses<'a> {
        Losses::new(self, plan)
    }

    /// The bytes a plan for this map gives up, by priority.
    #[must_use]
    pub fn lost(&self, plan: &Plan) -> Lost {
        let mut lost = Lost::default();
        for loss in self.losses(plan) {
            lost.add(&loss);
        }
        lost
    }

    /// The allowed default type with the fewest registers, and how many.
    pub(super) fn best(&self, fewest: &Fewest) -> (MemType, usize) {
        let mut best = None;
        for memtype in self.defaults() {
            let need = fewest.with_default(memtype);
            if best.is_none_or(|(_, least)| need < least) {
                best = Some((memtype, need));
            }
        }
        best.unwrap_or((MemType::Uncachable, usize::MAX))
    }

    /// The default types that may be used, in order of preference.
    pub(super) fn defaults(&self) -> impl Iterator<Item = MemType> + use<> {
        let (given, has_wc) = (self.default, self.has_wc);
        [
            MemType::Uncachable,
            MemType::WriteBack,
            MemType::WriteThrough,
            MemType::WriteProtected,
            MemType::WriteCombining,
        ]
        .into_iter()
        .filter(move |memtype| has_wc || *memtype != MemType::WriteCombining)
        .filter(move |memtype| match given {
            DefaultType::Free => true,
            DefaultType::Given(given) => given == *memtype,
        })
    }

    fn check(&self) -> Result<(), LayoutError> {
        if self.registers > MAX_VARIABLE {
            return Err(LayoutError::TooManyRegisters {
                registers: self.registers,
            });
        }
        if !self.has_wc && self.default == DefaultType::Given(MemType::WriteCombining) {
            return Err(LayoutError::NoWriteCombining);
        }
        region::check(self.regions, self.bits)
    }

    fn check_strict(&self) -> Result<(), LayoutError> {
        self.check()?;
        let wc = Want::Type(MemType::WriteCombining);
        if !self.has_wc && self.regions.iter().any(|region| region.want == wc) {
            return Err(LayoutError::NoWriteCombining);
        }
        Ok(())
    }
}

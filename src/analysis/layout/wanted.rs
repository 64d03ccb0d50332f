//! The question: a wanted map and the machine it is for.

use super::error::LayoutError;
use super::options::{DefaultType, FixedRanges, Unlisted};
use super::plan::Fewest;
use super::region::{self, Region, Want};
use crate::memtype::MemType;
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MtrrCap, SysCfg};
use crate::snapshot::Snapshot;

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

    pub(super) fn check(&self) -> Result<(), LayoutError> {
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

    pub(super) fn check_strict(&self) -> Result<(), LayoutError> {
        self.check()?;
        let wc = Want::Type(MemType::WriteCombining);
        if !self.has_wc && self.regions.iter().any(|region| region.want == wc) {
            return Err(LayoutError::NoWriteCombining);
        }
        Ok(())
    }
}

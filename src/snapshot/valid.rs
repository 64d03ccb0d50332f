//! Which word of a snapshot a processor would refuse.

use super::Snapshot;
use crate::error::Fixture;
use crate::memtype::MemType;
use crate::memtype::ReservedType;
use crate::pat::Pat;
use crate::ranges::{FIXED_RANGES, PhysBits};
use crate::regs::{MsrAddr, MtrrCap, MtrrDefType, VariableMtrr};

impl VariableMtrr {
    /// Whether a CPU with this MTRRCAP that decodes so many bits takes the base.
    pub(crate) fn base_is_writable(self, cap: MtrrCap, bits: PhysBits) -> bool {
        let has_wc = cap.contains(MtrrCap::WC);
        let has = |memtype| has_wc || memtype != MemType::WriteCombining;
        self.memtype().is_ok_and(has) && self.base & !(bits.page_mask() | 0xff) == 0
    }

    /// Whether a CPU that decodes so many bits takes the mask.
    const fn mask_is_writable(self, bits: PhysBits) -> bool {
        self.mask & !(bits.page_mask() | Self::V) == 0
    }
}

impl Snapshot {
    /// Empties words of pairs that are not in use which no write could give another CPU: reset may leave
    /// such.
    pub(crate) fn drop_unwritable(&mut self) {
        let (bits, count) = (self.phys_bits, self.variable_count());
        let cap = self.cap.unwrap_or(MtrrCap::from_raw(0));
        let pairs = self.variable.iter_mut().take(count);
        for pair in pairs.filter(|pair| !pair.valid()) {
            if !pair.base_is_writable(cap, bits) {
                pair.base = 0;
            }
            if !pair.mask_is_writable(bits) {
                pair.mask = 0;
            }
        }
    }

    /// What of a new target is of another machine than this one: it cannot be changed.
    pub(crate) fn foreign(&self, target: &Self) -> Option<Fixture> {
        let shown = self.fixed_dram_bits != target.fixed_dram_bits;
        let parts = [
            (self.phys_bits != target.phys_bits, Fixture::Width),
            (self.cap != target.cap, Fixture::Mtrrcap),
            (self.pat.is_some() != target.pat.is_some(), Fixture::Pat),
            (shown || self.syscfg != target.syscfg, Fixture::Syscfg),
            (self.top_mem2 != target.top_mem2, Fixture::TopMem2),
        ];
        let bad = parts.into_iter().find(|(bad, _)| *bad);
        bad.map(|(_, part)| part)
    }

    /// The first register whose word this machine would refuse: a reserved type, or bits above the
    /// physical address width. Pairs that are not in use count too: WRMSR looks at them as well.
    #[must_use]
    pub fn first_invalid(&self) -> Option<MsrAddr> {
        /// Type, FE and E.
        const DEF_TYPE_BITS: u64 = 0xff | MtrrDefType::FE | MtrrDefType::E;
        let bad_type = |memtype: Result<MemType, ReservedType>| {
            !memtype.is_ok_and(|memtype| !self.lacks(memtype))
        };
        let bad_def =
            bad_type(self.def_type.memtype()) || self.def_type.raw() & !DEF_TYPE_BITS != 0;
        if self.cap.is_some() && bad_def {
            return Some(MsrAddr::MTRR_DEF_TYPE);
        }
        let (cap, bits) = (self.cap.unwrap_or(MtrrCap::from_raw(0)), self.phys_bits);
        for (n, range) in self.variable_ranges().iter().enumerate() {
            if !range.base_is_writable(cap, bits) {
                return Some(MsrAddr::phys_base(n));
            }
            if !range.mask_is_writable(bits) {
                return Some(MsrAddr::phys_mask(n));
            }
        }
        let dram_bits = if self.shows_dram_bits() { 0x18 } else { 0 };
        let bad_byte = |byte: u8| {
            let memtype = MemType::from_field(byte & !dram_bits);
            memtype.is_err() || memtype.is_ok_and(|memtype| self.lacks(memtype))
        };
        for (word, range) in self.fixed.iter().zip(FIXED_RANGES) {
            let bad = if self.has_fixed() {
                word.to_le_bytes().into_iter().any(bad_byte)
            } else {
                *word != 0
            };
            if bad {
                return Some(range.msr);
            }
        }
        let pat = self.pat.unwrap_or(Pat::POWER_ON);
        if (0..8).any(|slot| pat.slot(slot).is_err()) {
            return Some(MsrAddr::PAT);
        }
        None
    }

    /// Whether the processor does not have this type in its MTRRs: WC without MTRRCAP.WC.
    fn lacks(&self, memtype: MemType) -> bool {
        let has_wc = self.cap.is_some_and(|cap| cap.contains(MtrrCap::WC));
        memtype == MemType::WriteCombining && !has_wc
    }
}

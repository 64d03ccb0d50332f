//! Which word of a snapshot a processor would refuse.

use super::Snapshot;
use crate::memtype::MemType;
use crate::pat::Pat;
use crate::ranges::FIXED_RANGES;
use crate::regs::{MsrAddr, MtrrDefType, VariableMtrr};

impl Snapshot {
    /// The first register whose word this machine would refuse: a reserved type, or bits above the
    /// physical address width. Pairs that are not in use count too: WRMSR looks at them as well.
    #[must_use]
    pub fn first_invalid(&self) -> Option<MsrAddr> {
        /// Type, FE and E.
        const DEF_TYPE_BITS: u64 = 0xff | MtrrDefType::FE | MtrrDefType::E;
        let bad_def = self.def_type.memtype().is_err() || self.def_type.raw() & !DEF_TYPE_BITS != 0;
        if self.cap.is_some() && bad_def {
            return Some(MsrAddr::MTRR_DEF_TYPE);
        }
        let address = self.phys_bits.page_mask();
        for (n, range) in self.variable_ranges().iter().enumerate() {
            if range.memtype().is_err() || range.base & !(address | 0xff) != 0 {
                return Some(MsrAddr::phys_base(n));
            }
            if range.mask & !(address | VariableMtrr::V) != 0 {
                return Some(MsrAddr::phys_mask(n));
            }
        }
        let dram_bits = if self.shows_dram_bits() { 0x18 } else { 0 };
        let bad_byte = |byte: u8| MemType::from_field(byte & !dram_bits).is_err();
        for (word, range) in self.fixed.iter().zip(FIXED_RANGES) {
            if self.has_fixed() && word.to_le_bytes().into_iter().any(bad_byte) {
                return Some(range.msr);
            }
        }
        let pat = self.pat.unwrap_or(Pat::POWER_ON);
        if (0..8).any(|slot| pat.slot(slot).is_err()) {
            return Some(MsrAddr::PAT);
        }
        None
    }
}

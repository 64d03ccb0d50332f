//! What an input says of the registers of one CPU.

use std::collections::BTreeMap;

use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{FIXED_COUNT, IORR_COUNT, Iorr, MAX_VARIABLE};
use mtrr_pat::routing::Routing;

/// One variable range as a dump gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// Known to be off; words not shown.
    Off,
    /// The register words.
    Words {
        /// IA32_MTRR_PHYSBASEn.
        base: Option<u64>,
        /// IA32_MTRR_PHYSMASKn.
        mask: Option<u64>,
    },
    /// What /proc/mtrr computed: the mask must be worked out again.
    Range {
        /// First byte.
        base: u64,
        /// Bytes, as printed.
        size: u64,
        /// The type byte.
        memtype: u8,
    },
}

/// One fixed-range register: the bytes a dump gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// The word.
    pub word: u64,
    /// Bit n: byte n is known.
    pub known: u8,
}

/// What is known of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// MTRRCAP.
    pub cap: Option<u64>,
    /// The default type byte.
    pub default: Option<u8>,
    /// E of DEF_TYPE.
    pub enabled: Option<bool>,
    /// FE of DEF_TYPE.
    pub fixed_enabled: Option<bool>,
    /// By register number.
    pub variable: BTreeMap<u8, Variable>,
    /// In the order of [`FIXED_RANGES`].
    pub fixed: [Fixed; FIXED_COUNT],
    /// The PAT as firmware left it, or the only one shown.
    pub pat: Option<u64>,
    /// AMD SYSCFG.
    pub syscfg: Option<u64>,
    /// AMD TOP_MEM2.
    pub top_mem2: Option<u64>,
    /// AMD TOP_MEM.
    pub top_mem: Option<u64>,
    /// Base and mask of AMD's I/O ranges.
    pub iorr: [(Option<u64>, Option<u64>); IORR_COUNT],
    /// IA32_TME_ACTIVATE.
    pub tme_activate: Option<u64>,
}

impl Regs {
    /// Stores DEF_TYPE.
    pub fn set_def_type(&mut self, word: u64) {
        self.default = Some(word as u8);
        self.fixed_enabled = Some(word >> 10 & 1 == 1);
        self.enabled = Some(word >> 11 & 1 == 1);
    }

    /// Stores one word of a variable pair; the other half is kept.
    pub fn set_variable_word(&mut self, index: u8, mask_half: bool, word: u64) {
        if usize::from(index) >= MAX_VARIABLE {
            return;
        }
        let entry = self.variable.entry(index).or_insert(Variable::Off);
        let (mut base, mut mask) = match *entry {
            Variable::Words { base, mask } => (base, mask),
            _ => (None, None),
        };
        if mask_half {
            mask = Some(word);
        } else {
            base = Some(word);
        }
        *entry = Variable::Words { base, mask };
    }

    /// Drops one word of a variable pair: bases have even places, masks odd ones.
    pub fn forget_variable_word(&mut self, place: u32) {
        let index = (place / 2) as u8;
        let Some(Variable::Words { base, mask }) = self.variable.get_mut(&index) else {
            return;
        };
        *if place & 1 == 1 {
            &mut *mask
        } else {
            &mut *base
        } = None;
        if (*base, *mask) == (None, None) {
            self.variable.remove(&index);
        }
    }

    /// Stores one word of an I/O range; the other half is kept.
    pub fn set_iorr_word(&mut self, index: usize, mask_half: bool, word: u64) {
        if let Some((base, mask)) = self.iorr.get_mut(index) {
            *if mask_half { mask } else { base } = Some(word);
        }
    }

    /// Stores one fixed-range register, all eight bytes.
    pub fn set_fixed_word(&mut self, index: usize, word: u64) {
        if let Some(fixed) = self.fixed.get_mut(index) {
            *fixed = Fixed { word, known: 0xff };
        }
    }

    /// Stores `memtype` for the sub-ranges inside `first..=last`.
    pub fn set_fixed_range(&mut self, first: u64, last: u64, memtype: u8) {
        for (range, fixed) in FIXED_RANGES.iter().zip(&mut self.fixed) {
            for byte in 0..8u32 {
                let start = range.base + u64::from(byte) * range.step;
                if start >= first && start + range.step - 1 <= last {
                    fixed.word &= !(0xff << (byte * 8));
                    fixed.word |= u64::from(memtype) << (byte * 8);
                    fixed.known |= 1 << byte;
                }
            }
        }
    }

    /// What is known of the registers that only firmware sets.
    pub fn routing(&self) -> Routing {
        let whole = |(base, mask): (Option<u64>, Option<u64>)| {
            Some(Iorr {
                base: base?,
                mask: mask?,
            })
        };
        Routing {
            top_mem: self.top_mem,
            iorr: self.iorr.map(whole),
            tme_activate: self.tme_activate,
        }
    }

    /// Whether every byte of every fixed range is known.
    pub fn fixed_known(&self) -> bool {
        self.fixed.iter().all(|fixed| fixed.known == 0xff)
    }

    /// Whether some byte of a fixed range is known.
    pub fn fixed_seen(&self) -> bool {
        self.fixed.iter().any(|fixed| fixed.known != 0)
    }

    /// Whether anything about MTRRs is known.
    pub fn has_mtrr(&self) -> bool {
        self.default.is_some() || !self.variable.is_empty() || self.fixed_seen()
    }
}

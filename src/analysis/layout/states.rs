//! What a block of the trie inherits, and what may become of what is wanted there.
//!
//! A node of the trie is looked at in one of ten states: one of five types combined from the
//! blocks around it, or no block around it and one of five default types.

use super::region::{Kind, Region, Want};
use crate::memtype::MemType;

/// How many memory types, hence default types, there are.
pub(super) const TYPES: usize = 5;

/// Index of a type in tables: the rank of its encoding.
pub(super) const fn rank(memtype: MemType) -> u8 {
    match memtype {
        MemType::Uncachable => 0,
        MemType::WriteCombining => 1,
        MemType::WriteThrough => 2,
        MemType::WriteProtected => 3,
        MemType::WriteBack => 4,
    }
}

/// The type of a rank; UC for a number that is none.
pub(super) const fn of_rank(rank: u8) -> MemType {
    match rank {
        1 => MemType::WriteCombining,
        2 => MemType::WriteThrough,
        3 => MemType::WriteProtected,
        4 => MemType::WriteBack,
        _ => MemType::Uncachable,
    }
}

/// What one uniform piece of the address space wants, in a byte.
///
/// Bits 2:0 the rank of the type, or 5 for "don't care"; bit 3: the default type is WB here
/// whatever DEF_TYPE says (AMD, below TOP_MEM2); bit 4: MMIO; bits 6:5 the priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// Nothing is wanted.
    pub(super) const DONT_CARE: Self = Self(5);
    /// What tells classes apart when every byte must get its type.
    pub(super) const STRICT: u8 = 0x0f;
    /// The same when types may be given up.
    pub(super) const LENIENT: u8 = 0x1f;
    /// The same when the priority of what is given up counts.
    pub(super) const WEIGHED: u8 = 0x7f;
    /// How many classes differ under [`Self::LENIENT`].
    pub(super) const COUNT: usize = 32;

    pub(super) const fn of(region: &Region) -> Self {
        match region.want {
            Want::DontCare => Self::DONT_CARE,
            Want::Type(memtype) => {
                let mmio = matches!(region.kind, Kind::Mmio) as u8;
                Self(rank(memtype) | mmio << 4 | (region.priority as u8) << 5)
            }
        }
    }

    pub(super) const fn from_index(index: u8) -> Self {
        Self(index)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The class where the default type is WB by force.
    pub(super) const fn forced_wb(self) -> Self {
        if self.want().is_none() {
            self
        } else {
            Self(self.0 | 1 << 3)
        }
    }

    /// The class with only the bits of a mask.
    pub(super) const fn masked(self, mask: u8) -> Self {
        Self(self.0 & mask)
    }

    /// The rank of the type wanted.
    pub(super) const fn want(self) -> Option<u8> {
        let want = self.0 & 7;
        if want < TYPES as u8 { Some(want) } else { None }
    }

    pub(super) const fn kind(self) -> Kind {
        if self.0 & 1 << 4 == 0 {
            Kind::Ram
        } else {
            Kind::Mmio
        }
    }

    /// The priority as a number, 0 to 2.
    pub(super) const fn priority(self) -> u8 {
        self.0 >> 5
    }

    /// The rank of the type memory has here where no block covers it.
    pub(super) const fn bare(self, default: u8) -> u8 {
        if self.0 & 1 << 3 == 0 { default } else { 4 }
    }

    /// Whether the type of rank `got` is what is wanted.
    pub(super) const fn met_by(self, got: u8) -> bool {
        match self.want() {
            None => true,
            Some(want) => want == got,
        }
    }

    /// Whether the type of rank `got` is what is wanted, or may be given instead.
    ///
    /// Anything may become UC, which is slow and never wrong. MMIO may become nothing else. RAM
    /// may trade the cacheable types WB, WT and WP among each other, and WC for WB; wanted UC it
    /// stays UC.
    pub(super) const fn bearable(self, got: u8) -> bool {
        const UC: u8 = rank(MemType::Uncachable);
        const WC: u8 = rank(MemType::WriteCombining);
        const WB: u8 = rank(MemType::WriteBack);
        if self.met_by(got) || got == UC {
            return true;
        }
        match (self.kind(), self.want()) {
            (Kind::Mmio, _) | (_, None | Some(UC)) => false,
            (Kind::Ram, Some(WC)) => got == WB,
            (Kind::Ram, Some(_)) => got != WC,
        }
    }
}

/// The types a block may add where the blocks around it combine to `under`, `None` without any.
///
/// Left out: blocks that change nothing, and blocks whose overlap is undefined. UC wins over
/// all, WT with WB gives WT.
///
/// Source: Intel SDM 3A, "MTRR Precedences".
pub(super) const fn blocks(under: Option<u8>) -> &'static [u8] {
    match under {
        None => &[0, 1, 2, 3, 4],
        Some(4) => &[0, 2],
        Some(1..=3) => &[0],
        Some(_) => &[],
    }
}

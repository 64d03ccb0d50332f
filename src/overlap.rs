//! Which type wins where variable ranges overlap.

use core::fmt;

use crate::memtype::{MemType, ReservedType};

/// Why no manual says which type some memory has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Undefined {
    /// Variable ranges overlap in a mix the manuals leave undefined, such as WB with WC.
    Mix,
    /// A register that decides here holds a reserved encoding.
    Reserved,
    /// The address lies above the physical address space.
    BeyondWidth,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mix => "undefined (overlap)",
            Self::Reserved => "undefined (reserved type)",
            Self::BeyondWidth => "undefined (beyond the address width)",
        })
    }
}

/// The type the MTRRs give some memory, or that they give it none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MtrrType {
    /// The type is this.
    Defined(MemType),
    /// The manuals do not say; where an answer is forced, it is UC.
    Undefined(Undefined),
}

impl MtrrType {
    /// The type, with UC for what is undefined: never stronger caching than the truth may be.
    #[must_use]
    pub const fn forced(self) -> MemType {
        match self {
            Self::Defined(memtype) => memtype,
            Self::Undefined(_) => MemType::Uncachable,
        }
    }

    /// The type, when there is one.
    #[must_use]
    pub const fn defined(self) -> Option<MemType> {
        match self {
            Self::Defined(memtype) => Some(memtype),
            Self::Undefined(_) => None,
        }
    }

    /// Turns the decoded type byte of a register into what that register gives.
    #[must_use]
    pub const fn from_decoded(decoded: Result<MemType, ReservedType>) -> Self {
        match decoded {
            Ok(memtype) => Self::Defined(memtype),
            Err(_) => Self::Undefined(Undefined::Reserved),
        }
    }
}

impl From<MemType> for MtrrType {
    fn from(memtype: MemType) -> Self {
        Self::Defined(memtype)
    }
}

impl fmt::Display for MtrrType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defined(memtype) => memtype.fmt(f),
            Self::Undefined(undefined) => undefined.fmt(f),
        }
    }
}

/// The set of types of the variable ranges that match one address; their order cannot matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TypeSet(u8);

impl TypeSet {
    /// No range.
    pub const EMPTY: Self = Self(0);
    const RESERVED: Self = Self(1 << 7);

    /// The set that holds one type.
    #[must_use]
    pub const fn of(memtype: MemType) -> Self {
        Self(1 << memtype.raw())
    }

    /// The set that holds the type of one range, which may be reserved.
    #[must_use]
    pub const fn of_decoded(decoded: Result<MemType, ReservedType>) -> Self {
        match decoded {
            Ok(memtype) => Self::of(memtype),
            Err(_) => Self::RESERVED,
        }
    }

    /// Both sets together.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set, or the empty one, chosen without a branch.
    #[inline]
    pub(crate) const fn only_if(self, keep: bool) -> Self {
        Self(self.0 & (keep as u8).wrapping_neg())
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every type of this set is in `other`.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The type that wins; `None` when the set is empty, which leaves it to the default type.
    ///
    /// Any UC wins, even over a reserved type; WT with WB gives WT; equal types are fine; every
    /// other mix is undefined.
    ///
    /// Source: Intel SDM 3A, "MTRR Precedences"; AMD APM 2, "MTRRs and Page Cache Controls",
    /// "Overlapping MTRR Registers".
    #[must_use]
    #[inline]
    pub fn resolve(self) -> Option<MtrrType> {
        // A table, because which types meet is hard to predict for a branch.
        static RESOLVED: [Option<MtrrType>; 256] = {
            let mut table = [None; 256];
            let mut set = 0;
            while let Some(cell) = table.split_at_mut(set).1.first_mut() {
                *cell = TypeSet(set as u8).decide();
                set += 1;
            }
            table
        };
        RESOLVED.get(usize::from(self.0)).copied().flatten()
    }

    const fn decide(self) -> Option<MtrrType> {
        const UC: u8 = TypeSet::of(MemType::Uncachable).0;
        const WC: u8 = TypeSet::of(MemType::WriteCombining).0;
        const WT: u8 = TypeSet::of(MemType::WriteThrough).0;
        const WP: u8 = TypeSet::of(MemType::WriteProtected).0;
        const WB: u8 = TypeSet::of(MemType::WriteBack).0;
        const WT_WB: u8 = WT | WB;
        Some(match self.0 {
            0 => return None,
            set if set & UC != 0 => MtrrType::Defined(MemType::Uncachable),
            set if set & Self::RESERVED.0 != 0 => MtrrType::Undefined(Undefined::Reserved),
            WC => MtrrType::Defined(MemType::WriteCombining),
            WT | WT_WB => MtrrType::Defined(MemType::WriteThrough),
            WP => MtrrType::Defined(MemType::WriteProtected),
            WB => MtrrType::Defined(MemType::WriteBack),
            _ => MtrrType::Undefined(Undefined::Mix),
        })
    }
}

impl fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = MemType::ALL
            .iter()
            .filter(|memtype| Self::of(**memtype).is_within(*self));
        let mut set = f.debug_set();
        set.entries(types.map(|memtype| memtype.short()));
        if Self::RESERVED.is_within(*self) {
            set.entry(&"reserved");
        }
        set.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemType::{
        Uncachable as UC, WriteBack as WB, WriteCombining as WC, WriteProtected as WP,
        WriteThrough as WT,
    };

    fn resolved(types: &[MemType]) -> Option<MtrrType> {
        let set = |all: TypeSet, memtype: &MemType| all.with(TypeSet::of(*memtype));
        let forwards = types.iter().fold(TypeSet::EMPTY, set).resolve();
        let backwards = types.iter().rev().fold(TypeSet::EMPTY, set).resolve();
        assert_eq!(forwards, backwards);
        forwards
    }

    /// The combinations asked about in the report on a hypervisor that turned {WB} into UC.
    #[test]
    fn overlaps_of_a_real_report() {
        let mix = Some(MtrrType::Undefined(Undefined::Mix));
        assert_eq!(resolved(&[WB]), Some(WB.into()));
        assert_eq!(resolved(&[WB, WT]), Some(WT.into()));
        assert_eq!(resolved(&[WT, WT]), Some(WT.into()));
        assert_eq!(resolved(&[WB, WB]), Some(WB.into()));
        assert_eq!(resolved(&[WB, UC]), Some(UC.into()));
        assert_eq!(resolved(&[WT, UC]), Some(UC.into()));
        assert_eq!(resolved(&[WB, WC]), mix);
        assert_eq!(resolved(&[WP, WB]), mix);
        assert_eq!(resolved(&[]), None);
    }

    /// Every set of types, reserved included, against the rule as the manuals list it.
    #[test]
    fn every_set() {
        for bits in 0u32..64 {
            let members: Vec<MemType> = (0..5)
                .filter(|i| bits & (1 << i) != 0)
                .map(|i| MemType::ALL[i])
                .collect();
            let reserved = bits & 32 != 0;
            let mut set = members
                .iter()
                .fold(TypeSet::EMPTY, |all, one| all.with(TypeSet::of(*one)));
            if reserved {
                set = set.with(TypeSet::of_decoded(Err(ReservedType(3))));
            }
            let want = if members.contains(&UC) {
                Some(UC.into())
            } else if reserved {
                Some(MtrrType::Undefined(Undefined::Reserved))
            } else if members.is_empty() {
                None
            } else if members.len() == 1 {
                Some(members[0].into())
            } else if members == [WT, WB] {
                Some(WT.into())
            } else {
                Some(MtrrType::Undefined(Undefined::Mix))
            };
            assert_eq!(set.resolve(), want, "{set:?}");
        }
        assert!(!TypeSet::of(WP).is_within(TypeSet::of(WC)));
    }
}

//! The page attribute table: layouts, slot search, page-table bits.
//!
//! Owns the eight slots; refuses to know which CPU holds them. [`Pat`] is the word,
//! [`Slot`] one of its entries and the page-table bits that select it.

use core::fmt;

use crate::memtype::{PatType, ReservedType};

mod choice;
mod slot;

pub use choice::{NoPatSlot, PatChoice};
pub use slot::Slot;

/// The IA32_PAT word: eight bytes, one type each, slot 0 in the low byte.
///
/// Source: Intel SDM 3A, "IA32_PAT MSR"; AMD APM 2, "PAT Register".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "IA32_PAT")]
#[repr(transparent)]
pub struct Pat(u64);

/// Why a word may not be written to IA32_PAT: the first slot with a reserved type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPat {
    /// The lowest such slot.
    pub slot: Slot,
    /// What it holds.
    pub found: ReservedType,
}

impl fmt::Display for BadPat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAT {} holds {}", self.slot, self.found)
    }
}

impl core::error::Error for BadPat {}

impl Pat {
    /// What reset leaves: WB WT UC- UC, twice.
    pub const POWER_ON: Self = Self(0x0007_0406_0007_0406);
    /// The layout Linux programs: WB WC UC- UC WB WP UC- WT.
    pub const LINUX: Self = Self(0x0407_0506_0007_0106);
    /// Low half as reset leaves it, WP and WC in slots 4 and 5: page tables made by a boot loader
    /// that knows only PCD and PWT keep their meaning.
    pub const LOW_HALF_UNTOUCHED: Self = Self(0x0007_0105_0007_0406);

    /// Wraps the word as read, reserved types included.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The word for a layout of one's own, slot 0 first.
    ///
    /// In a `const` the layout is checked when the kernel is compiled: a reserved type cannot be
    /// named, and `assert!` holds what else the kernel relies on.
    ///
    /// ```
    /// use mtrr_pat::memtype::PatType::{self, *};
    /// use mtrr_pat::pat::Pat;
    ///
    /// const LAYOUT: Pat = Pat::from_types([
    ///     WriteBack, WriteThrough, UncachedMinus, Uncachable,
    ///     WriteCombining, WriteProtected, Uncachable, Uncachable,
    /// ]);
    /// const _: () = assert!(LAYOUT.keeps_low_half());
    /// const _: () = assert!(LAYOUT.find(PatType::WriteCombining).is_some());
    /// assert_eq!(LAYOUT.raw(), 0x0000_0501_0007_0406);
    /// ```
    #[must_use]
    pub const fn from_types(types: [PatType; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = types;
        Self(u64::from_le_bytes([
            a.raw(),
            b.raw(),
            c.raw(),
            d.raw(),
            e.raw(),
            f.raw(),
            g.raw(),
            h.raw(),
        ]))
    }

    /// Wraps a word that is to be written: WRMSR would raise #GP for a reserved type.
    ///
    /// # Errors
    /// [`BadPat`] names the first slot whose type the manuals reserve.
    pub const fn validate(raw: u64) -> Result<Self, BadPat> {
        let pat = Self(raw);
        let mut slots = Slot::ALL.as_slice();
        while let [slot, rest @ ..] = slots {
            if let Err(found) = pat.slot(slot.index()) {
                return Err(BadPat { slot: *slot, found });
            }
            slots = rest;
        }
        Ok(pat)
    }

    /// The word as read.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The type in slot `index & 7`.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn slot(self, index: u8) -> Result<PatType, ReservedType> {
        PatType::from_field((self.0 >> ((index & 7) * 8)) as u8)
    }

    /// The lowest slot that holds exactly `wanted`, in this PAT as it is.
    ///
    /// Slots 0 to 3 are preferred because they need no PAT bit: the same page-table bits then work
    /// in pages of every size and in entries that point to a table, no code that takes bit 7 for
    /// "large page" can misread them, and early processors whose errata ignore the PAT bit are
    /// served as well.
    #[must_use]
    pub const fn find(self, wanted: PatType) -> Option<Slot> {
        self.find_in(wanted, Slot::ALL.as_slice())
    }

    /// The lowest slot of the first four that holds exactly `wanted`.
    ///
    /// An entry that points to a page table, and CR3, have PWT and PCD but no PAT bit: the memory
    /// type of a page-table walk comes from these four.
    #[must_use]
    pub const fn find_for_table(self, wanted: PatType) -> Option<Slot> {
        self.find_in(wanted, Slot::LOW_HALF.as_slice())
    }

    const fn find_in(self, wanted: PatType, mut slots: &[Slot]) -> Option<Slot> {
        while let [slot, rest @ ..] = slots {
            // Compared as encodings: `==` on enums is not const.
            if let Ok(memtype) = self.slot(slot.index())
                && memtype.raw() == wanted.raw()
            {
                return Some(*slot);
            }
            slots = rest;
        }
        None
    }

    /// Whether slots 0 to 3 hold what reset leaves there, so that page tables made by code that
    /// knows only PCD and PWT keep their meaning.
    #[must_use]
    pub const fn keeps_low_half(self) -> bool {
        self.0 as u32 == Self::POWER_ON.0 as u32
    }
}

// The named layouts are what their documentation says, and every word of legal types is legal.
const _: () = {
    use PatType::{
        Uncachable as U, UncachedMinus as M, WriteBack as B, WriteCombining as C,
        WriteProtected as P, WriteThrough as T,
    };
    assert!(Pat::from_types([B, T, M, U, B, T, M, U]).0 == Pat::POWER_ON.0);
    assert!(Pat::from_types([B, C, M, U, B, P, M, T]).0 == Pat::LINUX.0);
    assert!(Pat::from_types([B, T, M, U, P, C, M, U]).0 == Pat::LOW_HALF_UNTOUCHED.0);
    assert!(Pat::validate(Pat::POWER_ON.0).is_ok());
    assert!(Pat::validate(Pat::LINUX.0).is_ok());
    assert!(Pat::validate(Pat::LOW_HALF_UNTOUCHED.0).is_ok());
    assert!(Pat::validate(0x0007_0406_0207_0406).is_err());
    assert!(Pat::LOW_HALF_UNTOUCHED.keeps_low_half());
    assert!(!Pat::LINUX.keeps_low_half());
};

impl fmt::Debug for Pat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pat({:#018x})", self.0)
    }
}

impl fmt::Display for Pat {
    /// Writes the eight short names, slot 0 first; `?` for a reserved type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..8 {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(self.slot(index).map_or("?", PatType::short))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PatType::{
        Uncachable, UncachedMinus, WriteBack, WriteCombining, WriteProtected, WriteThrough,
    };

    /// Xen gives its guests a layout of its own: code that assumes Linux's finds WT for WC.
    #[test]
    fn the_layout_of_another_owner_is_searched() {
        let xen = Pat::from_types([
            WriteBack,
            WriteThrough,
            UncachedMinus,
            Uncachable,
            WriteCombining,
            WriteProtected,
            Uncachable,
            Uncachable,
        ]);
        assert_eq!(xen.raw(), 0x0000_0501_0007_0406);
        assert_eq!(xen.to_string(), "WB WT UC- UC WC WP UC UC");
        let wc = xen.find(WriteCombining).unwrap();
        assert_eq!(wc.index(), 4);
        assert_eq!(wc.to_string(), "slot 4 (PAT=1 PCD=0 PWT=0)");
        assert_eq!((wc.bits_4k(), wc.bits_large()), (1 << 7, 1 << 12));
        assert_eq!(xen.find_for_table(WriteCombining), None);
        assert_eq!(wc.bits_table(), None);
        let of_linux = Pat::LINUX.find(WriteCombining).unwrap();
        assert_eq!(of_linux.bits_4k(), Slot::PWT);
        assert_eq!(xen.slot(of_linux.index()), Ok(WriteThrough));
    }

    #[test]
    fn a_zero_pat_has_nothing_but_uc() {
        let zero = Pat::from_raw(0);
        for wanted in PatType::ALL {
            let choice = zero.choose(wanted);
            assert_eq!(choice.unwrap().granted, Uncachable);
            assert_eq!(choice.unwrap().is_exact(), wanted == Uncachable);
        }
    }

    #[test]
    fn power_on_reaches_four_types() {
        let found = PatType::ALL.map(|wanted| Pat::POWER_ON.find(wanted).is_some());
        assert_eq!(found, [true, false, true, false, true, true]);
        let choice = Pat::POWER_ON.choose(WriteCombining).unwrap();
        assert_eq!((choice.granted, choice.slot.index()), (UncachedMinus, 2));
        assert_eq!(
            choice.to_string(),
            "slot 2 (PAT=0 PCD=1 PWT=0): uncached-minus in place of write-combining, \
             which the PAT lacks"
        );
        let choice = Pat::POWER_ON.choose(WriteProtected).unwrap();
        assert_eq!((choice.granted, choice.slot.index()), (Uncachable, 3));
    }

    #[test]
    fn uc_has_no_stand_in() {
        let without_uc = Pat::from_raw(0x0707_0707_0707_0606);
        assert_eq!(
            without_uc.choose(Uncachable),
            Err(NoPatSlot { wanted: Uncachable })
        );
        assert_eq!(
            without_uc.choose(WriteThrough),
            Err(NoPatSlot {
                wanted: WriteThrough
            })
        );
    }

    /// The first reserved byte is named, wherever it is and whatever it holds.
    #[test]
    fn every_reserved_byte_is_refused() {
        for slot in Slot::ALL {
            let shift = slot.index() * 8;
            for byte in 0..=u8::MAX {
                let raw = Pat::LINUX.raw() & !(0xff << shift) | u64::from(byte) << shift;
                match PatType::from_field(byte) {
                    Ok(memtype) => {
                        assert_eq!(Pat::validate(raw), Ok(Pat::from_raw(raw)));
                        let lowest = Pat::from_raw(raw).find(memtype).unwrap();
                        assert!(lowest <= slot);
                        assert_eq!(Pat::from_raw(raw).slot(lowest.index()), Ok(memtype));
                    }
                    Err(found) => assert_eq!(Pat::validate(raw), Err(BadPat { slot, found })),
                }
            }
        }
    }

    /// What the `x86_64` crate does with the PAT bits, as our documentation says.
    #[test]
    fn the_traps_of_page_table_flags() {
        use x86_64::PhysAddr;
        use x86_64::structures::paging::PageTableFlags as Flags;
        use x86_64::structures::paging::page_table::PageTableEntry;
        let slot = Pat::LINUX.find(WriteThrough).unwrap();
        assert_eq!(slot.index(), 7);
        assert!((Flags::PRESENT | slot.flags_4k()).contains(Flags::HUGE_PAGE));

        let mut entry = PageTableEntry::new();
        let large = Flags::PRESENT | Flags::HUGE_PAGE;
        entry.set_addr(PhysAddr::new(0x20_0000), large | slot.flags_large());
        assert_eq!(
            entry.flags() & slot.flags_large(),
            Flags::WRITE_THROUGH | Flags::NO_CACHE
        );
        assert_eq!(entry.addr(), PhysAddr::new(0x20_1000));
        assert_eq!(
            Flags::from_bits_truncate(slot.bits_large()).bits(),
            Slot::MASK_TABLE
        );
        let low = Slot::new(0).unwrap();
        entry.set_flags(large | low.flags_large());
        assert_eq!(entry.addr(), PhysAddr::new(0x20_1000));
    }
}

//! One PAT slot, and the page-table bits that select it.

use core::fmt;

use x86_64::structures::paging::PageTableFlags;

/// One of the eight PAT entries, as page tables select it: `PAT*4 + PCD*2 + PWT`.
///
/// PWT is bit 3 and PCD bit 4 of every entry. The PAT bit is bit 7 in an entry that maps a 4 KiB
/// page, and bit 12 in one that maps a 2 MiB or 1 GiB page, where bit 7 says "large page". The
/// raw bits are the interface; `PageTableFlags` is offered one way, with its traps.
///
/// Source: Intel SDM 3A, "Selecting a Memory Type from the PAT" and "Paging"; AMD APM 2, "PAT
/// Indexing" and "Page-Translation-Table Entry Fields".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Slot(u8);

impl Slot {
    /// PWT, page-level write-through: bit 0 of the index, bit 3 of an entry.
    pub const PWT: u64 = 1 << 3;
    /// PCD, page-level cache disable: bit 1 of the index, bit 4 of an entry.
    pub const PCD: u64 = 1 << 4;
    /// PAT in an entry that maps a 4 KiB page: bit 2 of the index. "Large page" elsewhere.
    pub const PAT_4K: u64 = 1 << 7;
    /// PAT in an entry that maps a 2 MiB or 1 GiB page: bit 2 of the index. Address elsewhere.
    pub const PAT_LARGE: u64 = 1 << 12;
    /// Every bit that selects the slot in an entry that maps a 4 KiB page.
    pub const MASK_4K: u64 = Self::PAT_4K | Self::MASK_TABLE;
    /// Every bit that selects the slot in an entry that maps a 2 MiB or 1 GiB page.
    pub const MASK_LARGE: u64 = Self::PAT_LARGE | Self::MASK_TABLE;
    /// Every bit that selects the slot in an entry that points to a table, and in CR3.
    pub const MASK_TABLE: u64 = Self::PCD | Self::PWT;

    /// The eight slots, ascending.
    pub const ALL: [Self; 8] = [
        Self(0),
        Self(1),
        Self(2),
        Self(3),
        Self(4),
        Self(5),
        Self(6),
        Self(7),
    ];
    /// The slots that need no PAT bit, ascending.
    pub const LOW_HALF: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// The slot with this index; `None` above 7.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if index < 8 { Some(Self(index)) } else { None }
    }

    /// 0 to 7.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0
    }

    const fn low_bits(self) -> u64 {
        (self.0 as u64 & 3) << 3
    }

    /// The bits that select this slot in an entry that maps a 4 KiB page: of 7, 4 and 3.
    #[must_use]
    pub const fn bits_4k(self) -> u64 {
        self.low_bits() | (self.0 as u64 >> 2) << 7
    }

    /// The bits that select this slot in an entry that maps a 2 MiB or 1 GiB page: of 12, 4 and 3.
    ///
    /// The "large page" bit 7 is not among them.
    #[must_use]
    pub const fn bits_large(self) -> u64 {
        self.low_bits() | (self.0 as u64 >> 2) << 12
    }

    /// The bits that select this slot in an entry that points to a table, or in CR3: of 4 and 3.
    ///
    /// `None` for slots 4 to 7, which a page-table walk cannot select.
    #[must_use]
    pub const fn bits_table(self) -> Option<u64> {
        if self.0 < 4 {
            Some(self.low_bits())
        } else {
            None
        }
    }

    /// The slot an entry that maps a 4 KiB page selects; its other bits do not matter.
    #[must_use]
    pub const fn of_4k(entry: u64) -> Self {
        Self(((entry >> 3) & 3) as u8 | ((entry >> 5) & 4) as u8)
    }

    /// The slot an entry that maps a 2 MiB or 1 GiB page selects; its other bits do not matter.
    #[must_use]
    pub const fn of_large(entry: u64) -> Self {
        Self(((entry >> 3) & 3) as u8 | ((entry >> 10) & 4) as u8)
    }

    /// The slot used to read the table an entry (or CR3) points to.
    #[must_use]
    pub const fn of_table(entry: u64) -> Self {
        Self(((entry >> 3) & 3) as u8)
    }

    /// The same 4 KiB entry with this slot selected, every other bit kept.
    #[must_use]
    pub const fn in_4k(self, entry: u64) -> u64 {
        entry & !Self::MASK_4K | self.bits_4k()
    }

    /// The same 2 MiB or 1 GiB entry with this slot selected, every other bit kept.
    #[must_use]
    pub const fn in_large(self, entry: u64) -> u64 {
        entry & !Self::MASK_LARGE | self.bits_large()
    }

    /// [`Slot::bits_4k`] for the page tables of the `x86_64` crate; to be or-ed to other flags.
    ///
    /// The trap: that crate calls bit 7 `HUGE_PAGE` at every level. With slots 4 to 7 the flags of
    /// a 4 KiB page "contain `HUGE_PAGE`", so `PageTableEntry::set_frame` panics (use `set_addr`),
    /// `PageTableEntry::frame` answers `HugeFrame`, and its mappers take the page for a large one.
    /// Slots 0 to 3, which [`crate::pat::Pat::find`] prefers, have no such trouble.
    #[must_use]
    pub const fn flags_4k(self) -> PageTableFlags {
        PageTableFlags::from_bits_retain(self.bits_4k())
    }

    /// [`Slot::bits_large`] for the page tables of the `x86_64` crate; to be or-ed to other flags.
    ///
    /// `HUGE_PAGE` is not among them. The trap: that crate takes bit 12 for a part of the address.
    /// With slots 4 to 7 the PAT bit goes into the entry, but `flags()` does not show it
    /// (`from_bits_truncate` drops it too), `addr()` returns an address 4 KiB too high, and
    /// `set_flags` keeps the old PAT bit, so that the entry can only move from slots 0..4 to
    /// 4..8, never back. Write the raw entry instead: [`Slot::in_large`].
    #[must_use]
    pub const fn flags_large(self) -> PageTableFlags {
        PageTableFlags::from_bits_retain(self.bits_large())
    }
}

// Every slot survives the way into an entry and back, whatever else the entry holds.
const _: () = {
    let mut slots = Slot::ALL.as_slice();
    while let [slot, rest @ ..] = slots {
        assert!(Slot::of_4k(slot.bits_4k()).0 == slot.0);
        assert!(Slot::of_large(slot.bits_large()).0 == slot.0);
        assert!(Slot::of_4k(slot.in_4k(u64::MAX)).0 == slot.0);
        assert!(Slot::of_large(slot.in_large(u64::MAX)).0 == slot.0);
        assert!(slot.in_4k(u64::MAX) | Slot::MASK_4K == u64::MAX);
        assert!(slot.in_large(u64::MAX) | Slot::MASK_LARGE == u64::MAX);
        assert!(slot.flags_4k().bits() == slot.bits_4k());
        assert!(slot.flags_large().bits() == slot.bits_large());
        match slot.bits_table() {
            Some(bits) => assert!(Slot::of_table(bits).0 == slot.0 && bits == slot.bits_4k()),
            None => assert!(slot.0 >= 4),
        }
        slots = rest;
    }
};

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.0)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "slot {} (PAT={} PCD={} PWT={})",
            self.0,
            self.0 >> 2,
            (self.0 >> 1) & 1,
            self.0 & 1
        )
    }
}

//! AMD's I/O ranges.

use core::fmt;

/// One I/O range of AMD: the words of IORRBasen and IORRMaskn, which say whether reads and writes
/// of the range go to memory or to memory-mapped I/O.
///
/// Source: AMD APM 2, "IORRs".
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
#[doc(alias = "IORRBasen")]
#[doc(alias = "IORRMaskn")]
pub struct Iorr {
    /// The base word: WrMem in bit 3, RdMem in bit 4, base address in bits 51:12.
    pub base: u64,
    /// The mask word: V in bit 11, mask in bits 51:12.
    pub mask: u64,
}

impl Iorr {
    /// V: the range is in use.
    pub const V: u64 = 1 << 11;
    /// RdMem, in the base word: reads go to memory.
    pub const RD_MEM: u64 = 1 << 4;
    /// WrMem, in the base word: writes go to memory.
    pub const WR_MEM: u64 = 1 << 3;

    /// Whether V is set.
    #[must_use]
    pub const fn valid(self) -> bool {
        self.mask & Self::V != 0
    }

    /// The bits that mean something: none of a range that is not in use.
    #[must_use]
    pub const fn in_effect(self) -> Self {
        const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
        if !self.valid() {
            return Self { base: 0, mask: 0 };
        }
        let mask = self.mask & (ADDRESS | Self::V);
        Self {
            base: self.base & (mask & ADDRESS | Self::RD_MEM | Self::WR_MEM),
            mask,
        }
    }
}

impl fmt::Debug for Iorr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Iorr {{ base: {:#x}, mask: {:#x} }}",
            self.base, self.mask
        )
    }
}

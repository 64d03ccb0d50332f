//! Geometry: the fixed ranges as one table, physical address width, bytes of a variable range.
//!
//! Owns where a register reaches; refuses to know which type wins there.

use core::fmt;

use crate::regs::{FIXED_COUNT, MsrAddr, VariableMtrr};

/// The first byte above the fixed ranges: 1 MiB.
pub const FIXED_END: u64 = 0x10_0000;

/// Where one fixed-range register lies: eight sub-ranges of `step` bytes from `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRange {
    /// The register.
    pub msr: MsrAddr,
    /// First byte of the lowest sub-range.
    pub base: u64,
    /// Bytes of one sub-range: 64 KiB, 16 KiB or 4 KiB.
    pub step: u64,
}

const fn fixed(msr: u32, base: u64, step: u64) -> FixedRange {
    FixedRange {
        msr: MsrAddr(msr),
        base,
        step,
    }
}

/// The fixed-range registers in ascending address; together they cover `0..1 MiB` once.
///
/// Source: Intel SDM 3A, "Fixed Range MTRRs".
pub const FIXED_RANGES: [FixedRange; FIXED_COUNT] = [
    fixed(0x250, 0x0_0000, 0x1_0000),
    fixed(0x258, 0x8_0000, 0x4000),
    fixed(0x259, 0xa_0000, 0x4000),
    fixed(0x268, 0xc_0000, 0x1000),
    fixed(0x269, 0xc_8000, 0x1000),
    fixed(0x26a, 0xd_0000, 0x1000),
    fixed(0x26b, 0xd_8000, 0x1000),
    fixed(0x26c, 0xe_0000, 0x1000),
    fixed(0x26d, 0xe_8000, 0x1000),
    fixed(0x26e, 0xf_0000, 0x1000),
    fixed(0x26f, 0xf_8000, 0x1000),
];

// The table has no gap and no overlap.
const _: () = {
    let mut next = 0;
    let mut i = 0;
    while i < FIXED_COUNT {
        #[allow(clippy::indexing_slicing)] // i is bounded by the loop, at compile time
        let range = FIXED_RANGES[i];
        assert!(range.base == next);
        next += 8 * range.step;
        i += 1;
    }
    assert!(next == FIXED_END);
};

/// The field of a fixed-range register that decides about one address below 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedSlot {
    /// Index of the register in [`FIXED_RANGES`].
    pub register: usize,
    /// Which byte of it, 0 the lowest.
    pub byte: u8,
    /// First byte of the sub-range.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
}

impl FixedSlot {
    /// Finds the field for an address; `None` from 1 MiB up.
    #[must_use]
    #[inline]
    pub const fn of(addr: u64) -> Option<Self> {
        // Registers before the group, its first address, and the size of one sub-range as a shift.
        let (first, base, shift) = match addr {
            0..0x8_0000 => (0, 0, 16),
            0x8_0000..0xc_0000 => (1, 0x8_0000, 14),
            0xc_0000..FIXED_END => (3, 0xc_0000, 12),
            _ => return None,
        };
        let field = (addr - base) >> shift;
        Some(Self {
            register: first + (field / 8) as usize,
            byte: (field % 8) as u8,
            start: base + (field << shift),
            end: base + ((field + 1) << shift),
        })
    }
}

/// How many physical address bits the MTRRs of this machine decode: 32 to 52.
///
/// CPUID 0x80000008 `EAX[7:0]` minus what memory encryption takes; [`crate::platform`] works it
/// out, and it is a parameter everywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysBits(u8);

impl PhysBits {
    /// The least a long-mode processor has had.
    pub const MIN: Self = Self(32);
    /// The most the architecture allows.
    pub const MAX: Self = Self(52);

    /// Checks a width.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        if bits >= Self::MIN.0 && bits <= Self::MAX.0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// The width in bits.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Bytes in the physical address space: `1 << bits`.
    #[must_use]
    pub const fn end(self) -> u64 {
        1 << self.0
    }

    /// The bits of a variable range's base and mask that hold an address: `bits-1 .. 12`.
    #[must_use]
    pub const fn page_mask(self) -> u64 {
        (self.end() - 1) & !0xfff
    }
}

impl fmt::Display for PhysBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits", self.0)
    }
}

/// [`VariableMtrr::next_change`] for a mask and a base already cut to each other and to the width.
pub(crate) const fn next_change(mask: u64, base: u64, addr: u64, bits: PhysBits) -> u64 {
    let end = bits.end();
    if addr >= end || mask == 0 {
        return end;
    }
    let wrong = (addr ^ base) & mask;
    let next = if wrong == 0 {
        // The next address that differs in a bit of the mask differs in its lowest one.
        let step = 1 << mask.trailing_zeros();
        (addr & !(step - 1)) + step
    } else {
        // All bits from the highest wrong one down.
        let low = u64::MAX >> wrong.leading_zeros();
        let highest = low ^ (low >> 1);
        if base & highest != 0 {
            // It is 0 and must be 1: the bits above it are right already.
            (addr & !low) | base
        } else {
            // It is 1 and must be 0: carry into the next bit above it that the mask leaves free.
            let carried = (addr | mask | low) + 1;
            (carried & !mask) | base
        }
    };
    if next < end && next > addr { next } else { end }
}

impl VariableMtrr {
    /// Whether an address matches this range, V or not: `addr & mask == base & mask`.
    #[must_use]
    pub const fn matches(self, addr: u64, bits: PhysBits) -> bool {
        let mask = self.mask & bits.page_mask();
        addr & mask == self.base & mask
    }

    /// The first address above `addr` where this range, V or not, starts or stops matching; the
    /// end of the address space when there is none.
    ///
    /// Computed from the bits, not searched, for masks with holes too.
    #[must_use]
    pub const fn next_change(self, addr: u64, bits: PhysBits) -> u64 {
        let mask = self.mask & bits.page_mask();
        next_change(mask, self.base & mask, addr, bits)
    }

    /// The aligned block this range covers, as (first byte, bytes), when its mask is contiguous.
    ///
    /// Base bits under the mask are ignored, as the processor does. `None` when the mask has
    /// holes: the range then matches several blocks.
    #[must_use]
    pub const fn block(self, bits: PhysBits) -> Option<(u64, u64)> {
        let mask = self.mask & bits.page_mask();
        let size = bits.end() - mask;
        if size.is_power_of_two() {
            Some((self.base & mask, size))
        } else {
            None
        }
    }

    /// The register pair for an aligned power-of-two block, in use.
    ///
    /// `None` when `size` is not a power of two of at least 4 KiB, `base` is not a multiple of it,
    /// or the block ends above the physical address space.
    #[must_use]
    pub const fn from_block(
        base: u64,
        size: u64,
        memtype: crate::memtype::MemType,
        bits: PhysBits,
    ) -> Option<Self> {
        if !size.is_power_of_two()
            || size < 0x1000
            || size > bits.end()
            || base & (size - 1) != 0
            || base > bits.end() - size
        {
            return None;
        }
        Some(Self {
            base: base | memtype.raw() as u64,
            mask: (bits.page_mask() & !(size - 1)) | Self::V,
        })
    }
}

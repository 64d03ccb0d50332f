//! What the lookup answers with: the reason, the type with its reason, and page sizes.

use core::fmt;

use crate::overlap::MtrrType;
use crate::ranges::FixedSlot;
use crate::regs::MAX_VARIABLE;

/// What decides about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The machine has no MTRRs; the page tables decide alone, as if the type were WB.
    NoMtrr,
    /// E is clear: all memory is UC.
    Disabled,
    /// A fixed range.
    Fixed(FixedSlot),
    /// Variable ranges.
    Variable {
        /// Bit n is set when pair n matches.
        pairs: u64,
    },
    /// AMD: the address lies between 4 GiB and TOP_MEM2, and SYSCFG forces WB there.
    TopMem2,
    /// The default type.
    Default,
    /// The address lies above the physical address space.
    BeyondWidth,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMtrr => f.write_str("no MTRRs"),
            Self::Disabled => f.write_str("MTRRs off (E=0)"),
            Self::Fixed(_) => f.write_str("fixed range"),
            Self::Variable { pairs } if pairs.count_ones() == 1 => {
                write!(f, "variable range {}", pairs.trailing_zeros())
            }
            Self::Variable { pairs } => {
                f.write_str("variable ranges")?;
                let all = (0..MAX_VARIABLE).filter(|pair| pairs & (1 << pair) != 0);
                all.enumerate().try_for_each(|(place, pair)| {
                    write!(f, "{}{pair}", if place == 0 { " " } else { ", " })
                })
            }
            Self::TopMem2 => f.write_str("TOP_MEM2"),
            Self::Default => f.write_str("default type"),
            Self::BeyondWidth => f.write_str("beyond the address width"),
        }
    }
}

/// The type of one address, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The type.
    pub memtype: MtrrType,
    /// What decides.
    pub source: Source,
}

impl fmt::Display for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == Source::BeyondWidth {
            // The type says so already.
            return write!(f, "{}", self.memtype);
        }
        write!(f, "{} ({})", self.memtype, self.source)
    }
}

/// The size of a page, as page tables have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageSize {
    /// 4 KiB.
    Size4K,
    /// 2 MiB.
    Size2M,
    /// 1 GiB.
    Size1G,
}

impl PageSize {
    /// Bytes of the page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Size4K => 0x1000,
            Self::Size2M => 0x20_0000,
            Self::Size1G => 0x4000_0000,
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Size4K => "4 KiB",
            Self::Size2M => "2 MiB",
            Self::Size1G => "1 GiB",
        })
    }
}

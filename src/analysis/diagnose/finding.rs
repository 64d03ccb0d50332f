//! One finding: how bad, what, where, how much.

use core::fmt;

use super::Registers;
use super::cells::Cube;
use super::text::Fix;
use crate::compare::SameMap;
use crate::memtype::ReservedType;
use crate::overlap::MtrrType;
use crate::ranges::PhysBits;
use crate::regs::MsrAddr;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Odd, wasteful or slow; the machine works.
    Warning,
    /// Wrong: very slow, undefined or unsafe.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The memory a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First byte.
    pub start: u64,
    /// First byte after the last.
    pub end: u64,
    /// Bytes concerned: fewer than lie between, where other memory is in between.
    pub bytes: u64,
}

impl Extent {
    pub(super) const fn of(cube: Cube) -> Self {
        Self {
            start: cube.value,
            end: cube.last() + 1,
            bytes: cube.bytes(),
        }
    }

    pub(super) const fn whole(start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            bytes: end.saturating_sub(start),
        }
    }

    /// Both together; they do not overlap.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl fmt::Display for Extent {
    /// Writes the last address, not the one after it, as kernel logs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, size) = (self.end.saturating_sub(1), Size(self.bytes));
        if self.bytes == self.end.saturating_sub(self.start) {
            write!(f, "{:#x}-{last:#x} ({size})", self.start)
        } else {
            write!(f, "{size} within {:#x}-{last:#x}", self.start)
        }
    }
}

/// A number of bytes, as people write it: in the largest unit that leaves no fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0;
        let mut units = UNITS.iter();
        let mut unit = units.next().unwrap_or(&"");
        while value != 0 && value.is_multiple_of(1024) {
            let Some(larger) = units.next() else { break };
            value /= 1024;
            unit = larger;
        }
        write!(f, "{value} {unit}")
    }
}

/// Where a memory type is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The default type.
    DefType,
    /// A variable range.
    Variable(u8),
    /// One or more fields of the fixed ranges; the finding's extent says which.
    Fixed,
    /// A slot of the PAT.
    PatSlot(u8),
}

/// Whether a range that may go may go together with the other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// All ranges so marked may be removed at once without changing the map.
    Together,
    /// It may be removed alone, but not with all those marked [`Removal::Together`].
    Alone,
}

/// What was found. The numbers of variable ranges count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// No MTRRs at all.
    NoMtrr,
    /// E is clear, but ranges with sensible types are programmed.
    OffProgrammed,
    /// E is clear, and no range is programmed.
    OffBlank,
    /// The MTRRs are on, and no memory above 1 MiB is write-back (reported without a memory map).
    NothingWriteBack {
        /// The default type.
        default: MtrrType,
    },
    /// RAM of another type than WB, other than WP.
    RamNotWriteBack {
        /// The type.
        memtype: MtrrType,
    },
    /// RAM of type WP.
    RamWriteProtected,
    /// RAM that is not used, for it is of another type than WB ([`super::Context::given_up`]).
    RamGivenUp {
        /// The type.
        memtype: MtrrType,
    },
    /// The memory map has RAM above what the address width reaches.
    RamBeyondWidth,
    /// The snapshot was decoded with another width than the machine has.
    WidthDisagrees {
        /// The snapshot's.
        snapshot: PhysBits,
        /// The machine's.
        expected: PhysBits,
    },
    /// A mask that is contiguous, but for another address width.
    MaskWidth {
        /// The range.
        pair: u8,
        /// The width it is made for.
        mask_bits: u8,
        /// The width that is decoded.
        width: PhysBits,
        /// Whether every range in use has such a mask: then the width is the suspect.
        all: bool,
    },
    /// A mask with holes: the range is many blocks.
    MaskHoles {
        /// The range.
        pair: u8,
        /// How many blocks.
        blocks: u64,
    },
    /// Base bits under zeros of the mask, which the processor ignores.
    BaseUnderMask {
        /// The range.
        pair: u8,
        /// The base as programmed.
        base: u64,
    },
    /// Bits that the manuals reserve are set in a register in use: writing it back raises #GP.
    ReservedBits {
        /// The register.
        msr: MsrAddr,
        /// The bits.
        bits: u64,
    },
    /// A type that the manuals reserve.
    ReservedType {
        /// Where.
        place: Place,
        /// What.
        found: ReservedType,
    },
    /// Two ranges overlap in a mix of types that has no defined result.
    UndefinedOverlap {
        /// The two ranges.
        pairs: [u8; 2],
    },
    /// Removing the range changes nothing: other ranges, or the default type, say the same.
    Redundant {
        /// The range.
        pair: u8,
        /// Whether with others.
        removal: Removal,
    },
    /// The type of the range holds nowhere: something else wins wherever it matches.
    NoEffect {
        /// The range.
        pair: u8,
        /// The type that wins; `None` when the fixed ranges do.
        winner: Option<MtrrType>,
        /// Whether with others.
        removal: Removal,
    },
    /// Every variable range is in use.
    NoFreePair {
        /// How many there are.
        pairs: u8,
    },
    /// AMD: RdMem and WrMem are visible in the fixed ranges.
    FixedDramVisible,
    /// AMD: RdMem and WrMem have effect, but were hidden when the snapshot was taken.
    FixedDramHidden,
    /// AMD: RdMem, WrMem and type of a fixed range are a reserved combination.
    FixedDramReserved {
        /// The byte.
        byte: u8,
    },
    /// AMD: TOP_MEM2 says there is memory above 4 GiB, but SYSCFG does not enable it.
    Tom2Off,
    /// AMD: TOP_MEM2 does not make the memory below it WB, and nothing else does.
    Tom2NotWriteBack,
    /// AMD: TOP_MEM2 makes the memory below it WB, but a variable range gives some another type
    /// (reported without a memory map).
    Tom2Overruled {
        /// The type.
        memtype: MtrrType,
    },
    /// No PAT.
    NoPat,
    /// Every slot of the PAT is UC: the register was never set up.
    PatZero,
    /// Slot 0, which page tables without cache bits select, is not WB.
    PatSlot0NotWriteBack,
    /// No slot is WC.
    PatWithoutWc,
    /// A CPU, and those like it, differ from the first one.
    CpuDiffers {
        /// The lowest such CPU; [`super::alike`] lists the others.
        cpu: usize,
        /// How many CPUs are in that very state.
        count: usize,
        /// Which registers differ.
        registers: Registers,
        /// Whether the maps do.
        map: SameMap,
        /// Whether the MTRRs of those CPUs are off (E=0) while the first one's are on.
        off: bool,
    },
    /// A CPU, and those like it, may take an address for other memory than the first one: registers
    /// that only firmware sets differ.
    RoutingDiffers {
        /// The lowest such CPU; [`super::routed_alike`] lists the others.
        cpu: usize,
        /// How many CPUs are routed like it.
        count: usize,
        /// Which registers differ from the first CPU's.
        registers: Registers,
    },
    /// The masks are too irregular: not every question was decided.
    Undecided,
}

/// Something a kernel author or a machine's owner should know; `Display` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What.
    pub kind: Kind,
    /// The memory concerned, if it is some in particular.
    pub extent: Option<Extent>,
}

impl Finding {
    pub(super) const fn new(severity: Severity, kind: Kind) -> Self {
        Self {
            severity,
            kind,
            extent: None,
        }
    }

    pub(super) const fn at(severity: Severity, kind: Kind, extent: Extent) -> Self {
        Self {
            severity,
            kind,
            extent: Some(extent),
        }
    }

    /// Bytes concerned; 0 when the finding is about no memory in particular.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extent.map_or(0, |extent| extent.bytes)
    }

    /// What to do about it.
    #[must_use]
    pub const fn fix(&self) -> Fix<'_> {
        Fix(self)
    }
}

//! What can be wrong with a question.

use core::fmt;

use crate::ranges::PhysBits;

/// What is wrong with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It has no bytes: `end` is not above `start`.
    Empty,
    /// A boundary is not a multiple of 4 KiB, the least step of a variable range.
    Unaligned,
    /// It ends above the physical address space.
    OutOfSpace,
    /// It starts below the region before it.
    Unsorted,
    /// It overlaps the region before it.
    Overlap,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it has no bytes",
            Self::Unaligned => "a boundary is not a multiple of 4 KiB",
            Self::OutOfSpace => "it ends above the physical address space",
            Self::Unsorted => "it starts below the region before it",
            Self::Overlap => "it overlaps the region before it",
        })
    }
}

/// Why a question about a layout has no answer. Nothing was planned or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// A region of the map cannot be used.
    Region {
        /// Its place in the slice; 0 for a region given alone.
        index: usize,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// More registers than the MSRs have room for, [`MAX_VARIABLE`](crate::regs::MAX_VARIABLE).
    TooManyRegisters {
        /// How many were said to exist.
        registers: usize,
    },
    /// WC is wanted, and MTRRCAP says that the processor has no WC type.
    NoWriteCombining,
    /// The scratch is shorter than [`scratch_len`](super::scratch_len) says.
    ShortScratch {
        /// Words needed.
        need: usize,
        /// Words given.
        have: usize,
    },
    /// The map has more regions than the storage has room for.
    MapFull {
        /// The room there is.
        capacity: usize,
    },
    /// The machine to edit has no MTRRs, or they are off (E=0): there is no map to edit.
    MtrrsOff,
    /// A boundary below 1 MiB does not fall on a step of the fixed ranges.
    FixedStep {
        /// The boundary.
        addr: u64,
        /// Bytes of the step it falls into.
        step: u64,
    },
    /// The type does not go with the RdMem and WrMem bits a fixed range has there (AMD).
    DramBits {
        /// First byte of the sub-range.
        addr: u64,
    },
    /// No variable range of that type lies wholly inside the range to take out.
    NoSuchRange,
    /// Without the range, others would overlap in a way the manuals leave undefined.
    Undefined {
        /// First byte of such an overlap.
        addr: u64,
    },
    /// What is wanted takes more registers than the machine it is to go to has.
    DoesNotFit {
        /// Registers of the plan.
        planned: usize,
        /// Variable ranges of the machine.
        exist: usize,
    },
    /// WC is wanted of what is write-back and may be RAM, whose users rely on the order of stores.
    /// [`Edit::ram_end`](super::Edit::ram_end) says what is not;
    /// [`Edit::set_over_ram`](super::Edit::set_over_ram) insists.
    OverRam {
        /// First such byte.
        addr: u64,
    },
    /// The plan was made for another address width than the machine has.
    OtherWidth {
        /// The plan's.
        planned: PhysBits,
        /// The machine's.
        exist: PhysBits,
    },
    /// The answer did not pass the check by [`lookup`](crate::lookup) and is withheld: a defect of
    /// this crate.
    Unverified {
        /// First byte that would have had a wrong type.
        addr: u64,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region { index, flaw } => write!(f, "region {index}: {flaw}"),
            Self::TooManyRegisters { registers } => {
                write!(f, "{registers} variable ranges, at most 40 exist")
            }
            Self::NoWriteCombining => f.write_str("this processor has no write-combining type"),
            Self::ShortScratch { need, have } => {
                write!(f, "scratch of {have} words, {need} are needed")
            }
            Self::MapFull { capacity } => write!(f, "the map has more than {capacity} regions"),
            Self::MtrrsOff => f.write_str("the MTRRs are missing or off"),
            Self::FixedStep { addr, step } => {
                write!(f, "{addr:#x} is inside a fixed range of {step:#x} bytes")
            }
            Self::DramBits { addr } => {
                write!(f, "RdMem and WrMem at {addr:#x} do not allow that type")
            }
            Self::NoSuchRange => f.write_str("no variable range of that type lies there"),
            Self::Undefined { addr } => write!(f, "undefined overlap at {addr:#x}"),
            Self::DoesNotFit { planned, exist } => {
                write!(
                    f,
                    "it takes {planned} variable ranges, the machine has {exist}"
                )
            }
            Self::OverRam { addr } => {
                write!(f, "write-combining over what may be RAM, at {addr:#x}")
            }
            Self::OtherWidth { planned, exist } => {
                write!(f, "the plan is for {planned}, the machine has {exist}")
            }
            Self::Unverified { addr } => write!(f, "planned a wrong type at {addr:#x}, withheld"),
        }
    }
}

impl core::error::Error for LayoutError {}

//! Why a range could not be reserved or released.

use core::fmt;

use super::Reservation;
use crate::memtype::PatType;

/// Why a range could not be reserved or released; the table is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// The range is empty, or ends above the largest physical address space.
    BadRange {
        /// As given.
        start: u64,
        /// As given.
        end: u64,
    },
    /// Part of the range is held with another type, and only the wanted one would do.
    Conflict {
        /// What is in the way.
        held: Reservation,
        /// What was wanted, after the policy.
        wanted: PatType,
    },
    /// Parts of the range are held with different types, so that none is right for all of it.
    SeveralTypes {
        /// One of them.
        first: Reservation,
        /// One with another type.
        second: Reservation,
    },
    /// Every place of the table is taken.
    Full {
        /// How many there are.
        capacity: usize,
    },
    /// The count of this range cannot go higher.
    TooOften {
        /// First byte.
        start: u64,
        /// First byte after it.
        end: u64,
    },
    /// No request for exactly this range is held.
    NotReserved {
        /// First byte.
        start: u64,
        /// First byte after it.
        end: u64,
    },
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRange { start, end } => {
                write!(f, "{start:#x}..{end:#x} is no range of physical addresses")
            }
            Self::Conflict { held, wanted } => {
                write!(f, "{wanted} was wanted, but {held} is reserved")
            }
            Self::SeveralTypes { first, second } => {
                write!(f, "no one type will do: {first} and {second} are reserved")
            }
            Self::Full { capacity } => {
                write!(f, "all {capacity} places for memory types are taken")
            }
            Self::TooOften { start, end } => {
                let last = end.saturating_sub(1);
                write!(f, "{start:#x}-{last:#x} is reserved too often to count")
            }
            Self::NotReserved { start, end } => {
                let last = end.saturating_sub(1);
                write!(f, "{start:#x}-{last:#x} is not reserved as a whole")
            }
        }
    }
}

impl core::error::Error for ReserveError {}

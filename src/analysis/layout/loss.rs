//! What a plan gives up.

use core::fmt;

use super::region::{Kind, Priority};
use crate::memtype::MemType;

/// Bytes that get another type than wanted, by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lost {
    /// Of regions at [`Priority::Low`].
    pub low: u64,
    /// Of regions at [`Priority::Normal`].
    pub normal: u64,
    /// Of regions at [`Priority::High`].
    pub high: u64,
}

impl Lost {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.low
            .saturating_add(self.normal)
            .saturating_add(self.high)
    }

    pub(super) const fn add(&mut self, loss: &Loss) {
        let bytes = loss.end.saturating_sub(loss.start);
        let sum = match loss.priority {
            Priority::Low => &mut self.low,
            Priority::Normal => &mut self.normal,
            Priority::High => &mut self.high,
        };
        *sum = sum.saturating_add(bytes);
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#x} bytes of high, {:#x} of normal, {:#x} of low priority",
            self.high, self.normal, self.low
        )
    }
}

/// A run of bytes that get another type than wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// The type wanted.
    pub wanted: MemType,
    /// The type it gets; UC where ranges overlap in an undefined way, which no plan of this
    /// module's does.
    pub got: MemType,
    /// What lies there.
    pub kind: Kind,
    /// The priority of what is lost.
    pub priority: Priority,
}

impl Loss {
    pub(super) fn continued_by(&self, other: &Self) -> bool {
        let moved = Self {
            start: self.start,
            end: self.end,
            ..*other
        };
        self.end == other.start && *self == moved
    }
}

impl fmt::Display for Loss {
    /// Writes the last address, not the one after it, as kernel logs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end.saturating_sub(1);
        let Self {
            start, wanted, got, ..
        } = self;
        write!(f, "{start:#x}-{last:#x} {got} instead of {wanted}")
    }
}

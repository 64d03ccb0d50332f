//! Whether two CPUs agree: word by word, and in the map they describe.
//!
//! Owns the two meanings of "the same"; refuses to know which CPU is right.

use core::fmt;

use crate::lookup::MtrrMap;
use crate::overlap::MtrrType;
use crate::snapshot::Snapshot;

/// Most pieces of the two maps one step of [`Differences`] looks at. Two maps with contiguous
/// masks have fewer than 400 together.
const MOST_PIECES: usize = 1024;

/// Memory to which two CPUs give different types, from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Difference {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// The type on the first CPU.
    pub first: MtrrType,
    /// The type on the second CPU.
    pub second: MtrrType,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end.saturating_sub(1);
        let Self { first, second, .. } = self;
        write!(f, "{:#x}-{last:#x} {first} and {second}", self.start)
    }
}

/// Whether two CPUs describe the same memory map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SameMap {
    /// Every address has the same type on both.
    Same,
    /// They differ; this is the lowest address range where they do.
    Differs(Difference),
    /// They agree below this address, but fall into too many pieces to look at all of them.
    /// Happens only under masks with holes; take it as differing.
    Unproven(u64),
}

impl Snapshot {
    /// Whether two CPUs hold the same words in every register, pairs not in use included.
    ///
    /// The strict meaning: what one must write to make them indistinguishable. MTRRCAP, SYSCFG,
    /// TOP_MEM2 and the PAT count as well.
    #[must_use]
    pub fn same_words(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether two CPUs give every address the same MTRR type.
    ///
    /// The meaning that counts: the order of the pairs, what pairs not in use hold and redundant
    /// ranges make no difference, nor does the PAT, which is another question.
    #[must_use]
    pub fn same_map(&self, other: &Self) -> SameMap {
        let (first, second) = (MtrrMap::new(self), MtrrMap::new(other));
        let mut differences = first.differences(&second);
        match (differences.next(), differences.unfinished()) {
            (Some(difference), _) => SameMap::Differs(difference),
            (None, Some(addr)) => SameMap::Unproven(addr),
            (None, None) => SameMap::Same,
        }
    }
}

impl MtrrMap {
    /// The address ranges to which two CPUs give different types, in ascending order.
    #[must_use]
    pub fn differences<'a>(&'a self, other: &'a Self) -> Differences<'a> {
        let end = self.end().max(other.end());
        Differences {
            first: self,
            second: other,
            next: if self.looks_like(other) { end } else { 0 },
            end,
            unfinished: false,
        }
    }
}

/// Iterates over the address ranges on which two maps differ; made by [`MtrrMap::differences`].
///
/// A step takes bounded time on any register content: where two maps with holes in their masks
/// agree for more than a thousand pieces in a row, the iterator ends, and
/// [`Differences::unfinished`] says where it stopped looking. Contiguous masks cannot do that,
/// nor can two CPUs with the same set of ranges.
#[derive(Clone, Debug)]
pub struct Differences<'a> {
    first: &'a MtrrMap,
    second: &'a MtrrMap,
    next: u64,
    end: u64,
    unfinished: bool,
}

impl Differences<'_> {
    /// The address from which nothing was compared, when the iterator ended before the end.
    #[must_use]
    pub const fn unfinished(&self) -> Option<u64> {
        if self.unfinished {
            Some(self.next)
        } else {
            None
        }
    }

    /// The types at the address that is next, and up to where both hold.
    fn piece(&self) -> Difference {
        let (first, first_end) = self.first.piece(self.next);
        let (second, second_end) = self.second.piece(self.next);
        Difference {
            start: self.next,
            end: first_end.min(second_end).min(self.end),
            first,
            second,
        }
    }
}

impl Iterator for Differences<'_> {
    type Item = Difference;

    fn next(&mut self) -> Option<Difference> {
        if self.unfinished {
            return None;
        }
        let mut found: Option<Difference> = None;
        for _ in 0..MOST_PIECES {
            if self.next >= self.end {
                return found;
            }
            let piece = self.piece();
            found = match found {
                Some(run) if (run.first, run.second) != (piece.first, piece.second) => {
                    return found;
                }
                Some(run) => Some(Difference {
                    end: piece.end,
                    ..run
                }),
                None if piece.first != piece.second => Some(piece),
                None => None,
            };
            self.next = piece.end;
        }
        self.unfinished = found.is_none();
        found
    }
}

impl core::iter::FusedIterator for Differences<'_> {}

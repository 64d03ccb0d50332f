//! Runs of one type: the iterator over the physical space, and the query for uniformity.

use core::fmt;
use core::ops::Range;

use super::{FORCED_START, InUse, MtrrMap, State};
use crate::memtype::MemType;
use crate::overlap::{MtrrType, TypeSet};
use crate::ranges::next_change;

/// Most pieces one step of [`Runs`] joins: as many as a 2 MiB page has pages of 4 KiB. With
/// contiguous masks no map has so many: 40 ranges have 80 ends, the fixed ranges 88 fields, and
/// 4 GiB and TOP_MEM2 are two more.
const MOST_PIECES: usize = 512;

/// Memory of one type, from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// The type of all of it.
    pub memtype: MtrrType,
}

impl Run {
    /// Bytes in the run.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

impl fmt::Display for Run {
    /// Writes the last address, not the one after it, as kernel logs do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end.saturating_sub(1);
        write!(f, "{:#x}-{last:#x} {}", self.start, self.memtype)
    }
}

/// Whether a range has one memory type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uniformity {
    /// All of it has this type, however many registers say so.
    Uniform(MtrrType),
    /// It has several types; this is the run at its start.
    Mixed(Run),
    /// The type is the same up to the end of this run, but the range falls into too many pieces
    /// to look at all of them. Happens only under masks with holes; take it as mixed.
    Unproven(Run),
}

impl fmt::Display for Uniformity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(memtype) => write!(f, "{memtype}"),
            Self::Mixed(run) => write!(f, "mixed, {run} first"),
            Self::Unproven(run) => write!(f, "not known beyond {run}"),
        }
    }
}

impl Uniformity {
    /// The type, when it is known to be one.
    #[must_use]
    pub const fn uniform(self) -> Option<MtrrType> {
        match self {
            Self::Uniform(memtype) => Some(memtype),
            Self::Mixed(_) | Self::Unproven(_) => None,
        }
    }
}

impl MtrrMap {
    /// The whole physical space as runs of one type, in ascending order without gaps.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        self.runs_in(0..self.end())
    }

    /// The part of a range that lies in the physical space, as runs of one type, cut to it.
    #[must_use]
    pub fn runs_in(&self, range: Range<u64>) -> Runs<'_> {
        Runs {
            map: self,
            next: range.start,
            end: range.end.min(self.end()),
        }
    }

    /// Whether a range of bytes has one memory type, and which.
    ///
    /// An empty range has the type of the address where it starts. What lies above the physical
    /// space has a type of its own, [`BeyondWidth`](crate::overlap::Undefined::BeyondWidth).
    #[must_use]
    pub fn over(&self, range: Range<u64>) -> Uniformity {
        let (run, more) = self.run_from(range.start, range.end);
        if run.end >= range.end {
            Uniformity::Uniform(run.memtype)
        } else if more {
            Uniformity::Unproven(run)
        } else {
            Uniformity::Mixed(run)
        }
    }

    /// The run that starts at `start`, cut at `limit`; and whether it stopped short, so that
    /// memory of the same type may follow.
    fn run_from(&self, start: u64, limit: u64) -> (Run, bool) {
        let (memtype, mut end) = self.piece(start);
        let mut more = true;
        for _ in 0..MOST_PIECES {
            if end >= limit {
                break;
            }
            let (next_type, next_end) = self.piece(end);
            if next_type != memtype {
                more = false;
                break;
            }
            end = next_end;
        }
        let end = end.min(limit).max(start);
        let run = Run {
            start,
            end,
            memtype,
        };
        (run, more)
    }

    /// The type at an address, and an address above it up to which that type holds (and may go
    /// on holding).
    pub(crate) fn piece(&self, addr: u64) -> (MtrrType, u64) {
        if addr >= self.end() {
            return (self.at(addr).memtype, u64::MAX);
        }
        if self.state != State::Enabled {
            return (self.at(addr).memtype, self.end());
        }
        if let Some((memtype, slot)) = self.fixed_at(addr) {
            return (memtype, slot.end);
        }
        let types = self.types_at(addr);
        let forced = self.is_forced(addr);
        let default = if forced {
            MemType::WriteBack.into()
        } else {
            self.default
        };
        let memtype = types.resolve().unwrap_or(default);
        let kept = self.kept_by_default(addr, types, default);
        let end = kept.max(self.kept_by_anchor(addr, memtype, types));
        (memtype, self.cut_at_top_mem2(addr, end))
    }

    /// Up to where the default type holds: while no range of another type begins, it does not
    /// matter how ranges of the same type come and go. `addr` when other types are there.
    fn kept_by_default(&self, addr: u64, types: TypeSet, default: MtrrType) -> u64 {
        let same = default.defined().map_or(TypeSet::EMPTY, TypeSet::of);
        if types.is_within(same) {
            self.first_change(addr, |range| !range.kind.is_within(same))
        } else {
            addr
        }
    }

    /// Up to where the type of the matching ranges holds: while the one of them that reaches
    /// farthest matches and none begins that would change the answer.
    fn kept_by_anchor(&self, addr: u64, memtype: MtrrType, types: TypeSet) -> u64 {
        let Some(winner) = memtype.defined() else {
            return self.first_change(addr, |_| true);
        };
        let winner = TypeSet::of(winner);
        let anchored = self
            .ranges()
            .filter(|range| range.kind == winner && addr & range.mask == range.base)
            .map(|range| next_change(range.mask, range.base, addr, self.bits))
            .max()
            .unwrap_or(addr);
        let rival = self.first_change(addr, |range| {
            types.with(range.kind).with(winner).resolve() != Some(memtype)
        });
        anchored.min(rival)
    }

    /// The first address above `addr` where one of the chosen ranges begins or ends.
    fn first_change(&self, addr: u64, chosen: impl Fn(&InUse) -> bool) -> u64 {
        self.ranges()
            .filter(|range| chosen(range))
            .map(|range| next_change(range.mask, range.base, addr, self.bits))
            .min()
            .unwrap_or(self.end())
    }

    /// An end, cut at the two addresses where the default type changes on AMD.
    fn cut_at_top_mem2(&self, addr: u64, end: u64) -> u64 {
        if self.forced_end <= FORCED_START {
            end
        } else if addr < FORCED_START {
            end.min(FORCED_START)
        } else if addr < self.forced_end {
            end.min(self.forced_end)
        } else {
            end
        }
    }
}

/// Iterates over runs of one memory type, lazily; made by [`MtrrMap::runs`].
///
/// The runs are maximal: two neighbours differ in type. There is one exception, so that a step
/// takes bounded time on any register content: under masks with holes, a stretch of one type may
/// consist of billions of pieces that different ranges give it, and a run is cut after 512 of
/// them. Contiguous masks cannot do that.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    map: &'a MtrrMap,
    next: u64,
    end: u64,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.next >= self.end {
            return None;
        }
        let (run, _) = self.map.run_from(self.next, self.end);
        self.next = run.end;
        Some(run)
    }
}

impl core::iter::FusedIterator for Runs<'_> {}

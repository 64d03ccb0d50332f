//! The answer to a request: what was granted, and what it comes to under the MTRRs.

use core::fmt;

use super::Reservation;
use crate::combine::{CombineRule, Effective, Standing};
use crate::lookup::{MtrrMap, Uniformity};
use crate::memtype::PatType;

/// Most runs of the MTRR map that are looked at for one effective type.
const MOST_RUNS: usize = 256;

/// Why a request got the type it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// It is the wanted one.
    AsWanted,
    /// Another type already holds for pages of the range.
    Existing,
    /// Write-combining was wanted, and is refused by policy.
    WriteCombiningRefused,
}

/// What a request was granted: the type every mapping of the range must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// First byte; a multiple of 4 KiB.
    pub start: u64,
    /// First byte after it; a multiple of 4 KiB.
    pub end: u64,
    /// What was wanted.
    pub wanted: PatType,
    /// What was granted: to be looked up with [`crate::pat::Pat::choose`].
    pub memtype: PatType,
    /// Why it is that.
    pub granted: Granted,
    /// How many requests hold this very range, this one included.
    pub count: u32,
    /// The type of the range by the MTRRs alone. Map it with small pages unless it is uniform.
    pub mtrr: Uniformity,
    /// What the mapping really has, MTRRs and page tables together; `None` when that is not the
    /// same for all of the range.
    pub effective: Option<Effective>,
}

impl Grant {
    pub(super) fn new(
        reservation: Reservation,
        wanted: PatType,
        granted: Granted,
        map: &MtrrMap,
        rule: CombineRule,
    ) -> Self {
        let Reservation {
            start,
            end,
            memtype,
            count,
        } = reservation;
        Self {
            start,
            end,
            wanted,
            memtype,
            granted,
            count,
            mtrr: map.over(start..end),
            effective: effective(start, end, memtype, map, rule),
        }
    }

    /// Whether the granted type is the wanted one. The MTRRs may still make another of it: see
    /// [`Grant::effective`].
    #[must_use]
    pub fn is_as_wanted(&self) -> bool {
        self.memtype == self.wanted
    }
}

/// The one effective type of a mapping, if it has one. Looks at MTRR types in parts: they may
/// differ and still combine to the same, as every type does with UC.
fn effective(
    start: u64,
    end: u64,
    memtype: PatType,
    map: &MtrrMap,
    rule: CombineRule,
) -> Option<Effective> {
    if let Some(mtrr) = map.over(start..end).uniform() {
        return Some(Effective::combine(mtrr, memtype, rule));
    }
    if end > map.end() {
        return None;
    }
    let mut seen: Option<Effective> = None;
    let mut left = MOST_RUNS;
    for run in map.runs_in(start..end) {
        left = left.checked_sub(1)?;
        let here = Effective::combine(run.memtype, memtype, rule);
        seen = Some(match seen {
            None => here,
            Some(before) if before.page != here.page => return None,
            Some(before) => Effective {
                page: here.page,
                standing: weaker(before.standing, here.standing),
            },
        });
    }
    seen
}

/// Of two parts of a range, how far the manuals stand behind both.
const fn weaker(one: Standing, other: Standing) -> Standing {
    match (one, other) {
        (Standing::Undefined, _) | (_, Standing::Undefined) => Standing::Undefined,
        (Standing::Defined, standing) => standing,
        (Standing::NotRecommended, _) => Standing::NotRecommended,
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end.saturating_sub(1);
        write!(f, "{:#x}-{last:#x} {}", self.start, self.memtype)?;
        match self.granted {
            Granted::AsWanted => {}
            Granted::Existing => {
                write!(f, ", not {}: it is already reserved so", self.wanted)?;
            }
            Granted::WriteCombiningRefused => {
                f.write_str(", not write-combining: that is refused by policy")?;
            }
        }
        match self.effective {
            Some(effective) => write!(f, "; effectively {effective}"),
            None => f.write_str("; mixed by the MTRRs"),
        }
    }
}

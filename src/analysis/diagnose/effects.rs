//! What ranges do to each other: undefined overlaps, ranges that change nothing.

use super::cells::{Budget, Cells, Cube};
use super::survey::variable_blocks;
use super::{Extent, Finding, Kind, Removal, Severity};
use crate::lookup::MtrrMap;
use crate::overlap::{MtrrType, TypeSet, Undefined};
use crate::regs::{MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

const MIX: MtrrType = MtrrType::Undefined(Undefined::Mix);

/// The same registers with E set: what the ranges would do.
fn as_if_on(snapshot: &Snapshot) -> Snapshot {
    let mut on = *snapshot;
    on.def_type = MtrrDefType::from_raw(snapshot.def_type.raw() | MtrrDefType::E);
    on
}

fn in_use(snapshot: &Snapshot) -> impl Iterator<Item = (u8, VariableMtrr)> + Clone {
    let ranges = snapshot.variable_ranges().iter().copied();
    (0u8..).zip(ranges).filter(|(_, range)| range.valid())
}

/// Reports each two ranges that leave the type of some memory undefined.
pub(super) fn overlaps(snapshot: &Snapshot, budget: &mut Budget, report: &mut impl FnMut(Finding)) {
    let on = as_if_on(snapshot);
    let map = MtrrMap::new(&on);
    for (first, one) in in_use(snapshot) {
        for (second, other) in in_use(snapshot).filter(|(second, _)| *second > first) {
            let set = TypeSet::of_decoded(one.memtype());
            let set = set.with(TypeSet::of_decoded(other.memtype()));
            if set.resolve() != Some(MIX) {
                continue;
            }
            let bits = on.phys_bits;
            let Some(both) = Cube::of(one, bits).and(Cube::of(other, bits)) else {
                continue;
            };
            let leave_out = (1 << first) | (1 << second);
            if let Some(extent) = undefined_in(&on, &map, both, (leave_out, set), budget) {
                let kind = Kind::UndefinedOverlap {
                    pairs: [first, second],
                };
                report(Finding::at(Severity::Error, kind, extent));
            }
        }
    }
}

/// The part of a cube where the type is undefined, if two ranges left out cover all of it.
fn undefined_in(
    snapshot: &Snapshot,
    map: &MtrrMap,
    cube: Cube,
    (leave_out, types): (u64, TypeSet),
    budget: &mut Budget,
) -> Option<Extent> {
    let mut found: Option<Extent> = None;
    for block in variable_blocks(snapshot, 0..map.end()) {
        let Some(part) = block.and(cube) else {
            continue;
        };
        let ranges = snapshot.variable_ranges();
        for cell in Cells::new(ranges, leave_out, types, snapshot.phys_bits, part, budget) {
            if map.at(cell.value).memtype == MIX {
                let here = Extent::of(cell);
                found = Some(found.map_or(here, |sum| sum.and(here)));
            }
        }
    }
    found
}

/// What becomes of the map when a range is removed.
enum Without {
    /// Some type changes, or that was not decided.
    Changes,
    /// Nothing changes, and the range's own type holds somewhere.
    Same,
    /// Nothing changes, and another type (or a fixed range) wins wherever it matches.
    Overruled(Option<MtrrType>),
}

/// Reports each range that may be removed without changing the map.
pub(super) fn removable(
    snapshot: &Snapshot,
    budget: &mut Budget,
    report: &mut impl FnMut(Finding),
) {
    let on = as_if_on(snapshot);
    let mut candidates = 0u64;
    for (pair, _) in in_use(&on) {
        if !matches!(without(&on, pair, budget), Without::Changes) {
            candidates |= 1 << pair;
        }
    }
    let together = removable_together(&on, candidates, budget);
    for (pair, range) in in_use(&on) {
        if candidates & (1 << pair) == 0 {
            continue;
        }
        let removal = if together & (1 << pair) == 0 {
            Removal::Alone
        } else {
            Removal::Together
        };
        let kind = match without(&on, pair, budget) {
            Without::Changes => continue,
            Without::Same => Kind::Redundant { pair, removal },
            Without::Overruled(winner) => Kind::NoEffect {
                pair,
                winner,
                removal,
            },
        };
        let extent = Extent::of(Cube::of(range, on.phys_bits));
        report(Finding::at(Severity::Warning, kind, extent));
    }
}

/// Which of the candidates may go at once: one after the other, smallest and latest first, each
/// only if it still changes nothing; again and again, for one that had to stay may be free to go
/// once another has gone.
fn removable_together(on: &Snapshot, candidates: u64, budget: &mut Budget) -> u64 {
    let mut left = *on;
    let (mut together, mut before) = (0u64, !0);
    while together != before {
        before = together;
        let mut waiting = candidates & !together;
        while let Some(pair) = smallest(&left, waiting) {
            waiting &= !(1 << pair);
            if !matches!(without(&left, pair, budget), Without::Changes) {
                together |= 1 << pair;
                left = leaving_out(&left, pair);
            }
        }
    }
    together
}

/// The range of least reach among those of which the bit is set, the latest if there are several.
fn smallest(snapshot: &Snapshot, among: u64) -> Option<u8> {
    in_use(snapshot)
        .filter(|(pair, _)| among & (1 << pair) != 0)
        .min_by_key(|(pair, range)| (Cube::of(*range, snapshot.phys_bits).bytes(), !pair))
        .map(|(pair, _)| pair)
}

/// The same registers without one pair.
fn leaving_out(snapshot: &Snapshot, pair: u8) -> Snapshot {
    let mut less = *snapshot;
    if let Some(range) = less.variable.get_mut(usize::from(pair)) {
        range.mask &= !VariableMtrr::V;
    }
    less
}

/// Compares the map with the one without a range, everywhere the range matches.
fn without(on: &Snapshot, pair: u8, budget: &mut Budget) -> Without {
    let Some(range) = on.variable.get(usize::from(pair)) else {
        return Without::Changes;
    };
    let own = MtrrType::from_decoded(range.memtype());
    let reach = Cube::of(*range, on.phys_bits);
    let (with, less) = (MtrrMap::new(on), MtrrMap::new(&leaving_out(on, pair)));
    let (mut holds, mut winner) = (false, None);
    for block in variable_blocks(on, 0..with.end()) {
        let Some(part) = block.and(reach) else {
            continue;
        };
        let ranges = on.variable_ranges();
        for cell in Cells::new(
            ranges,
            1 << pair,
            TypeSet::EMPTY,
            on.phys_bits,
            part,
            budget,
        ) {
            let memtype = with.at(cell.value).memtype;
            if memtype != less.at(cell.value).memtype {
                return Without::Changes;
            }
            holds |= memtype == own;
            winner = winner.or(Some(memtype));
        }
    }
    if budget.is_spent() {
        Without::Changes
    } else if holds {
        Without::Same
    } else {
        Without::Overruled(winner)
    }
}

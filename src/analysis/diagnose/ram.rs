//! Whether RAM is write-back.

use core::ops::{ControlFlow, Range};

use super::cells::Budget;
use super::survey::pieces;
use super::{Context, Extent, Finding, Kind, Machine, Severity};
use crate::lookup::MtrrMap;
use crate::memtype::MemType;
use crate::overlap::{MtrrType, Undefined};
use crate::ranges::FIXED_END;
use crate::snapshot::Snapshot;

/// What RAM may have instead of WB, worst first.
const OTHERS: [MtrrType; 6] = [
    MtrrType::Defined(MemType::Uncachable),
    MtrrType::Undefined(Undefined::Mix),
    MtrrType::Undefined(Undefined::Reserved),
    MtrrType::Defined(MemType::WriteCombining),
    MtrrType::Defined(MemType::WriteProtected),
    MtrrType::Defined(MemType::WriteThrough),
];

/// Reports RAM that is not WB, one finding per type; without a memory map, memory of which
/// nothing is WB. Silent about a guest whose MTRRs are off: there the hypervisor decides.
pub(super) fn covered(
    snapshot: &Snapshot,
    map: &MtrrMap,
    context: &Context<'_>,
    budget: &mut Budget,
    report: &mut impl FnMut(Finding),
) {
    let on = snapshot.def_type.enabled();
    if !on && context.machine == Machine::Hypervisor {
        return;
    }
    match context.ram {
        Some(ram) => by_type(snapshot, map, context, ram, budget, report),
        None if on => any(snapshot, map, context, budget, report),
        None => {}
    }
}

fn by_type(
    snapshot: &Snapshot,
    map: &MtrrMap,
    context: &Context<'_>,
    ram: &[Range<u64>],
    budget: &mut Budget,
    report: &mut impl FnMut(Finding),
) {
    let mut found = Found::default();
    let mut given_up = Found::default();
    let mut beyond: Option<Extent> = None;
    for range in (0..ram.len()).flat_map(|place| counted_once(ram, place)) {
        let above = range.start.max(map.end());
        if above < range.end {
            let extent = Extent::whole(above, range.end);
            beyond = Some(beyond.map_or(extent, |sum| sum.and(extent)));
        }
        for (part, left_out) in parted(range, context.given_up) {
            let totals = if left_out { &mut given_up } else { &mut found };
            let _ = pieces(snapshot, map, part, budget, &mut |cube, memtype| {
                totals.add(memtype, Extent::of(cube));
                ControlFlow::Continue(())
            });
        }
    }
    for (memtype, extent) in found.all() {
        report(Finding::at(
            severity(memtype, context),
            kind(memtype),
            extent,
        ));
    }
    for (memtype, extent) in given_up.all() {
        let kind = Kind::RamGivenUp { memtype };
        report(Finding::at(Severity::Warning, kind, extent));
    }
    if let Some(extent) = beyond {
        report(Finding::at(Severity::Error, Kind::RamBeyondWidth, extent));
    }
}

/// Memory of each of the [`OTHERS`].
#[derive(Default)]
struct Found([Option<Extent>; OTHERS.len()]);

impl Found {
    fn add(&mut self, memtype: MtrrType, extent: Extent) {
        let others = OTHERS.iter().zip(&mut self.0);
        for (_, total) in others.filter(|(other, _)| **other == memtype) {
            *total = Some(total.map_or(extent, |sum| sum.and(extent)));
        }
    }

    fn all(self) -> impl Iterator<Item = (MtrrType, Extent)> {
        let pairs = OTHERS.into_iter().zip(self.0);
        pairs.filter_map(|(memtype, extent)| Some((memtype, extent?)))
    }
}

/// A range in parts that lie inside ranges given up, or outside all of them.
fn parted(range: Range<u64>, given_up: &[Range<u64>]) -> impl Iterator<Item = (Range<u64>, bool)> {
    let mut next = range.start;
    core::iter::from_fn(move || {
        let start = next;
        let inside = given_up.iter().any(|other| other.contains(&start));
        let edges = given_up.iter().flat_map(|other| [other.start, other.end]);
        let limit = edges.filter(|edge| *edge > start).min();
        next = limit.unwrap_or(range.end).min(range.end);
        (start < range.end).then_some((start..next, inside))
    })
}

/// The parts of one range that no earlier one has: firmware's maps do overlap.
fn counted_once(ram: &[Range<u64>], place: usize) -> impl Iterator<Item = Range<u64>> {
    let range = ram.get(place).cloned().unwrap_or_default();
    let earlier = ram.get(..place).unwrap_or_default();
    let mut next = range.start;
    core::iter::from_fn(move || {
        while let Some(other) = earlier.iter().find(|other| other.contains(&next)) {
            next = other.end;
        }
        let (start, starts) = (next, earlier.iter().filter(|other| !other.is_empty()));
        let limit = starts
            .map(|other| other.start)
            .filter(|at| *at > start)
            .min();
        next = limit.unwrap_or(range.end).min(range.end);
        (start < range.end).then_some(start..next)
    })
}

const fn kind(memtype: MtrrType) -> Kind {
    match memtype {
        MtrrType::Defined(MemType::WriteProtected) => Kind::RamWriteProtected,
        _ => Kind::RamNotWriteBack { memtype },
    }
}

const fn severity(memtype: MtrrType, context: &Context<'_>) -> Severity {
    match memtype {
        MtrrType::Defined(MemType::WriteProtected | MemType::WriteThrough) => Severity::Warning,
        _ => context.severity(Severity::Error, Severity::Warning),
    }
}

/// Reports when no memory above the fixed ranges is WB.
fn any(
    snapshot: &Snapshot,
    map: &MtrrMap,
    context: &Context<'_>,
    budget: &mut Budget,
    report: &mut impl FnMut(Finding),
) {
    let write_back = MtrrType::Defined(MemType::WriteBack);
    let range = FIXED_END..map.end();
    let found = pieces(snapshot, map, range, budget, &mut |_, memtype| {
        if memtype == write_back {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if found.is_continue() && !budget.is_spent() {
        let severity = context.severity(Severity::Error, Severity::Warning);
        let default = MtrrType::from_decoded(snapshot.def_type.memtype());
        report(Finding::new(severity, Kind::NothingWriteBack { default }));
    }
}

//! Every piece of a range of memory, with its type.

use core::ops::{ControlFlow, Range};

use super::cells::{Budget, Cells, Cube, blocks};
use crate::lookup::MtrrMap;
use crate::overlap::{MtrrType, TypeSet};
use crate::ranges::{FIXED_END, FixedSlot};
use crate::snapshot::Snapshot;

const FOUR_GIB: u64 = 1 << 32;

/// TOP_MEM2 as the processor takes it: bits 51:23.
pub(super) const fn top_mem2(snapshot: &Snapshot) -> u64 {
    snapshot.top_mem2 & 0x000f_ffff_ff80_0000
}

/// The blocks of a range in which only the variable ranges and one default type decide.
pub(super) fn variable_blocks(
    snapshot: &Snapshot,
    range: Range<u64>,
) -> impl Iterator<Item = Cube> {
    let start = if snapshot.fixed_in_force() {
        range.start.max(FIXED_END)
    } else {
        range.start
    };
    let end = range.end.min(snapshot.phys_bits.end());
    let top = top_mem2(snapshot).max(FOUR_GIB);
    [(0, FOUR_GIB), (FOUR_GIB, top), (top, u64::MAX)]
        .into_iter()
        .flat_map(move |(first, last)| blocks(start.max(first)..end.min(last)))
}

/// The fields of the fixed ranges, cut to a range.
fn fixed_fields(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut next = range.start;
    core::iter::from_fn(move || {
        let field = FixedSlot::of(next).filter(|_| next < range.end)?;
        let start = next;
        next = field.end.min(range.end);
        Some(start..next)
    })
}

/// Visits disjoint pieces of a range, each of one type, until told to stop; the part above the
/// physical space is left out. Incomplete when the budget is spent on the way.
pub(super) fn pieces(
    snapshot: &Snapshot,
    map: &MtrrMap,
    range: Range<u64>,
    budget: &mut Budget,
    visit: &mut impl FnMut(Cube, MtrrType) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if snapshot.fixed_in_force() {
        for field in fixed_fields(range.clone()) {
            for block in blocks(field) {
                visit(block, map.at(block.value).memtype)?;
            }
        }
    }
    // While E is clear, no range matters.
    let leave_out = if snapshot.def_type.enabled() { 0 } else { !0 };
    let ranges = snapshot.variable_ranges();
    for block in variable_blocks(snapshot, range) {
        let cells = Cells::new(
            ranges,
            leave_out,
            TypeSet::EMPTY,
            snapshot.phys_bits,
            block,
            budget,
        );
        for cell in cells {
            visit(cell, map.at(cell.value).memtype)?;
        }
    }
    ControlFlow::Continue(())
}

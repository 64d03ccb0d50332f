//! Which variable ranges do nothing, and why: what firmware left that could be free.

use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::snapshot::Snapshot;

use super::map::Map;

/// A note per variable range that exists: why it could be dropped, or what is odd about it.
///
/// `programmed` has E set and no TOP_MEM2; `top_mem2` is the snapshot with it, where it acts.
/// Ranges are tried smallest first and dropped one after the other, so that all that carry a note
/// can go together. Addresses below `floor` do not count: the fixed ranges decide there.
pub fn notes(programmed: &Snapshot, top_mem2: Option<&Snapshot>, floor: u64) -> Vec<String> {
    let mut notes = vec![String::new(); programmed.variable_count()];
    let mut order: Vec<usize> = (0..notes.len()).collect();
    order.sort_by_key(|index| {
        let block = programmed
            .variable
            .get(*index)
            .and_then(|pair| pair.block(programmed.phys_bits));
        (block.map_or(u64::MAX, |(_, size)| size), usize::MAX - index)
    });
    let mut rest = *programmed;
    for index in order.iter().copied() {
        if droppable(&mut rest, index, floor) {
            set(&mut notes, index, reason(programmed, index, floor));
        }
    }
    if let Some(snapshot) = top_mem2 {
        let mut rest = *snapshot;
        for index in order {
            let without_note = notes.get(index).is_some_and(String::is_empty);
            if droppable(&mut rest, index, floor) && without_note {
                set(
                    &mut notes,
                    index,
                    "not needed: TOP_MEM2 already makes this write-back".into(),
                );
            }
        }
    }
    notes
}

fn set(notes: &mut [String], index: usize, text: String) {
    if let Some(note) = notes.get_mut(index) {
        *note = text;
    }
}

/// Drops the range from `snapshot` when it is in use and the map stays the same without it.
fn droppable(snapshot: &mut Snapshot, index: usize, floor: u64) -> bool {
    let before = Map::new(snapshot);
    let Some(pair) = snapshot.variable.get_mut(index) else {
        return false;
    };
    if !pair.valid() {
        return false;
    }
    let kept = std::mem::take(pair);
    if Map::new(snapshot).same_above(&before, floor) {
        return true;
    }
    if let Some(pair) = snapshot.variable.get_mut(index) {
        *pair = kept;
    }
    false
}

/// Why the range does nothing.
fn reason(snapshot: &Snapshot, index: usize, floor: u64) -> String {
    let bits = snapshot.phys_bits;
    let Some(pair) = snapshot.variable.get(index).copied() else {
        return String::new();
    };
    let Some((start, size)) = pair.block(bits) else {
        return "useless: the other ranges already say this".into();
    };
    if start + size <= floor {
        return "useless: below 1 MiB, where the fixed ranges decide".into();
    }
    let around = |other: &VariableMtrr| {
        other.valid()
            && other
                .block(bits)
                .is_some_and(|(at, bytes)| at <= start && start + size <= at + bytes)
    };
    let mut outer = snapshot
        .variable_ranges()
        .iter()
        .enumerate()
        .filter(|(other, range)| *other != index && around(range));
    let uncachable = outer
        .clone()
        .find(|(_, range)| range.memtype() == Ok(MemType::Uncachable));
    match (pair.memtype(), uncachable) {
        (Ok(MemType::Uncachable), Some((other, _))) => {
            format!("useless: inside range {other}, which is uncachable too")
        }
        (_, Some((other, _))) => {
            format!("no effect: inside range {other}, and uncachable wins")
        }
        (memtype, None) => match outer.find(|(_, range)| range.memtype() == memtype) {
            Some((other, _)) => format!("useless: inside range {other} of the same type"),
            None if memtype == snapshot.def_type.memtype() => {
                "useless: same as the default type".into()
            }
            None => "useless: the other ranges already say this".into(),
        },
    }
}

//! What single registers say: enables, masks, bases, reserved contents, free pairs.

use super::cells::Cube;
use super::{Context, Extent, Finding, Kind, Place, Severity};
use crate::memtype::{MemType, ReservedType};
use crate::ranges::{FixedSlot, PhysBits};
use crate::regs::{MsrAddr, VariableMtrr};
use crate::snapshot::Snapshot;

/// Reports MTRRs that are off.
pub(super) fn state(snapshot: &Snapshot, context: &Context<'_>, report: &mut impl FnMut(Finding)) {
    if snapshot.def_type.enabled() {
        return;
    }
    let (kind, guest) = if is_programmed(snapshot) {
        (Kind::OffProgrammed, Severity::Warning)
    } else {
        (Kind::OffBlank, Severity::Info)
    };
    report(Finding::new(context.severity(Severity::Error, guest), kind));
}

/// Whether somebody meant something by these registers: a pair in use with a type that exists,
/// or fixed ranges of types that exist and are not all UC. (What reset leaves is not defined.)
fn is_programmed(snapshot: &Snapshot) -> bool {
    let mut ranges = snapshot.variable_ranges().iter();
    let fixed_set = snapshot.fixed.iter().any(|word| *word != 0);
    ranges.any(|range| range.valid() && range.memtype().is_ok())
        || (snapshot.has_fixed()
            && fixed_set
            && fixed_types(snapshot).all(|(_, decoded)| decoded.is_ok()))
}

/// The fields of the fixed ranges, ascending, and the type in each.
pub(super) fn fixed_types(
    snapshot: &Snapshot,
) -> impl Iterator<Item = (FixedSlot, Result<MemType, ReservedType>)> {
    let type_bits = if snapshot.shows_dram_bits() {
        !0x18
    } else {
        !0
    };
    fixed_bytes(snapshot).map(move |(slot, byte)| {
        let decoded = MemType::from_field(byte & type_bits);
        (slot, decoded.map_err(|_| ReservedType(byte)))
    })
}

/// The fields of the fixed ranges, ascending, and the byte in each.
pub(super) fn fixed_bytes(snapshot: &Snapshot) -> impl Iterator<Item = (FixedSlot, u8)> {
    let mut next = 0;
    core::iter::from_fn(move || {
        let slot = FixedSlot::of(next)?;
        next = slot.end;
        let word = snapshot.fixed.get(slot.register)?;
        Some((slot, (word >> (u32::from(slot.byte) * 8)) as u8))
    })
}

/// Reports reserved types in registers that are in use (judged as if E were set).
pub(super) fn types(snapshot: &Snapshot, report: &mut impl FnMut(Finding)) {
    let kind = |place, found| Kind::ReservedType { place, found };
    if let Err(found) = snapshot.def_type.memtype() {
        report(Finding::new(Severity::Error, kind(Place::DefType, found)));
    }
    for (pair, range) in (0u8..).zip(snapshot.variable_ranges()) {
        if let (true, Err(found)) = (range.valid(), range.memtype()) {
            let extent = Extent::of(Cube::of(*range, snapshot.phys_bits));
            let kind = kind(Place::Variable(pair), found);
            report(Finding::at(Severity::Error, kind, extent));
        }
    }
    if !snapshot.has_fixed() || !snapshot.def_type.fixed_enabled() {
        return;
    }
    let mut run: Option<(Extent, ReservedType)> = None;
    let mut flush = |run: &mut Option<(Extent, ReservedType)>| {
        if let Some((extent, found)) = run.take() {
            report(Finding::at(
                Severity::Error,
                kind(Place::Fixed, found),
                extent,
            ));
        }
    };
    for (slot, decoded) in fixed_types(snapshot) {
        let here = Extent::whole(slot.start, slot.end);
        match (decoded, run) {
            (Err(found), Some((extent, same))) if found == same => {
                run = Some((extent.and(here), found));
            }
            (Err(found), _) => {
                flush(&mut run);
                run = Some((here, found));
            }
            (Ok(_), _) => flush(&mut run),
        }
    }
    flush(&mut run);
}

/// Reports masks and bases that do not mean what they seem to.
pub(super) fn geometry(
    snapshot: &Snapshot,
    context: &Context<'_>,
    report: &mut impl FnMut(Finding),
) {
    let width = snapshot.phys_bits;
    if let Some(expected) = context.width.filter(|expected| *expected != width) {
        let kind = Kind::WidthDisagrees {
            snapshot: width,
            expected,
        };
        report(Finding::new(Severity::Warning, kind));
    }
    let ranges = snapshot.variable_ranges();
    let in_use = || ranges.iter().filter(|range| range.valid());
    let told = in_use().filter_map(|range| mask_width(*range)).min();
    let all = in_use().all(|range| mask_width(*range) == told || range.mask >> 12 == 0);
    for (pair, range) in (0u8..).zip(ranges).filter(|(_, range)| range.valid()) {
        let extent = Extent::of(Cube::of(*range, width));
        let shape = shape(*range, pair, width, all);
        if let Some(kind) = shape {
            report(Finding::at(shape_severity(kind), kind, extent));
        }
        let base = range.base & width.page_mask();
        if base & !range.mask != 0 {
            let kind = Kind::BaseUnderMask { pair, base };
            report(Finding::at(Severity::Warning, kind, extent));
        }
        let other_width = matches!(shape, Some(Kind::MaskWidth { .. }));
        reserved_bits(*range, pair, width, other_width, report);
    }
}

/// The width a contiguous mask was made for: its highest bit is the last address bit.
fn mask_width(range: VariableMtrr) -> Option<u8> {
    let mask = range.mask & !0xfff;
    // Shifted up to its highest bit, a contiguous mask has only zeros below its ones.
    let below = !(mask << mask.leading_zeros().min(63));
    let contiguous = mask != 0 && below & below.wrapping_add(1) == 0;
    let bits = 64 - mask.leading_zeros() as u8;
    contiguous.then_some(bits)
}

fn shape(range: VariableMtrr, pair: u8, width: PhysBits, all: bool) -> Option<Kind> {
    if let Some(mask_bits) = mask_width(range)
        && mask_bits != width.get()
        && PhysBits::new(mask_bits).is_some()
    {
        return Some(Kind::MaskWidth {
            pair,
            mask_bits,
            width,
            all,
        });
    }
    if range.block(width).is_some() {
        return None;
    }
    // Free bits below the lowest bit of the mask make one block; those above multiply it.
    let mask = range.mask & width.page_mask();
    let block = 1 << mask.trailing_zeros();
    let bytes = Cube::of(range, width).bytes();
    Some(Kind::MaskHoles {
        pair,
        blocks: bytes / block,
    })
}

const fn shape_severity(kind: Kind) -> Severity {
    match kind {
        // The reader's width is the likelier culprit when all masks agree.
        Kind::MaskWidth { all: true, .. } | Kind::MaskHoles { .. } => Severity::Warning,
        _ => Severity::Error,
    }
}

fn reserved_bits(
    range: VariableMtrr,
    pair: u8,
    width: PhysBits,
    other_width: bool,
    report: &mut impl FnMut(Finding),
) {
    let mut address = !0xfff & !width.page_mask();
    if other_width {
        // Said already, unless the bits are above any width.
        address &= !PhysBits::MAX.page_mask();
    }
    let n = usize::from(pair);
    let base = (MsrAddr::phys_base(n), range.base & (address | 0xf00));
    let mask = (MsrAddr::phys_mask(n), range.mask & (address | 0x7ff));
    for (msr, bits) in [base, mask] {
        if bits != 0 {
            let kind = Kind::ReservedBits { msr, bits };
            report(Finding::new(Severity::Error, kind));
        }
    }
}

/// Reports when no pair is free.
pub(super) fn free(snapshot: &Snapshot, report: &mut impl FnMut(Finding)) {
    let ranges = snapshot.variable_ranges();
    if ranges.iter().all(|range| range.valid()) {
        let kind = Kind::NoFreePair {
            pairs: ranges.len() as u8,
        };
        report(Finding::new(Severity::Info, kind));
    }
}

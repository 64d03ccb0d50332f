//! Edits of the fixed ranges: bytes below 1 MiB, neighbours in the same register untouched.

use core::ops::Range;

use super::error::LayoutError;
use crate::memtype::MemType;
use crate::ranges::FixedSlot;
use crate::snapshot::Snapshot;

/// Changes the bytes of the fixed ranges that lie in a range below 1 MiB.
pub(super) fn set_fixed(
    base: &mut Snapshot,
    range: Range<u64>,
    memtype: MemType,
) -> Result<(), LayoutError> {
    if let Some(slot) = FixedSlot::of(range.end)
        && slot.start != range.end
        && !range.is_empty()
    {
        return Err(off_step(range.end, slot));
    }
    let dram = if base.shows_dram_bits() { 0x18 } else { 0 };
    let mut addr = range.start;
    while addr < range.end
        && let Some(slot) = FixedSlot::of(addr)
    {
        if slot.start != addr {
            return Err(off_step(addr, slot));
        }
        if let Some(word) = base.fixed.get_mut(slot.register) {
            let shift = u32::from(slot.byte) * 8;
            let dram_bits = (*word >> shift) as u8 & dram;
            if dram != 0 && !goes_with_dram_bits(dram_bits, memtype) {
                return Err(LayoutError::DramBits { addr });
            }
            let byte = u64::from(dram_bits | memtype.raw());
            *word = *word & !(0xff << shift) | byte << shift;
        }
        addr = slot.end;
    }
    Ok(())
}

const fn off_step(addr: u64, slot: FixedSlot) -> LayoutError {
    LayoutError::FixedStep {
        addr,
        step: slot.end - slot.start,
    }
}

/// Whether a type may stand beside RdMem (0x10) and WrMem (0x08).
///
/// Source: AMD APM 2, "Extended Fixed-Range MTRR Type-Field Encodings".
const fn goes_with_dram_bits(dram_bits: u8, memtype: MemType) -> bool {
    match dram_bits {
        0 => !matches!(memtype, MemType::WriteBack),
        0x08 => matches!(memtype, MemType::Uncachable),
        0x10 => matches!(memtype, MemType::Uncachable | MemType::WriteProtected),
        _ => !matches!(memtype, MemType::WriteProtected),
    }
}

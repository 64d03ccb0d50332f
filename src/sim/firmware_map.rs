//! A usual memory map.

use crate::memtype::MemType;
use crate::pat::Pat;
use crate::ranges::PhysBits;
use crate::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

/// A usual desktop map: 2 GiB and 6 GiB of RAM write-back below and above the hole, the hole
/// uncachable, legacy video uncachable, ten variable ranges, PAT as reset leaves it.
#[must_use]
pub fn firmware_map() -> Snapshot {
    let bits = PhysBits::new(39).unwrap_or(PhysBits::MIN);
    let mut map = Snapshot::empty(bits);
    map.cap = Some(MtrrCap::from_raw(10) | MtrrCap::FIX | MtrrCap::WC | MtrrCap::SMRR);
    map.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE);
    map.pat = Some(Pat::POWER_ON);
    map.fixed = [0x0606_0606_0606_0606; crate::regs::FIXED_COUNT];
    if let Some(video) = map.fixed.get_mut(2) {
        *video = 0;
    }
    let blocks = [
        (0, 0x8000_0000),
        (0x1_0000_0000, 0x1_0000_0000),
        (0x2_0000_0000, 0x4000_0000),
    ];
    for (pair, (base, size)) in map.variable.iter_mut().zip(blocks) {
        *pair = VariableMtrr::from_block(base, size, MemType::WriteBack, bits).unwrap_or_default();
    }
    map
}

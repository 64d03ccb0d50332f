//! What AMD adds: RdMem and WrMem in the fixed ranges, TOP_MEM2.

use core::ops::ControlFlow;

use super::cells::Budget;
use super::registers::fixed_bytes;
use super::survey::{pieces, top_mem2};
use super::{Context, Extent, Finding, Kind, Severity};
use crate::lookup::MtrrMap;
use crate::memtype::MemType;
use crate::overlap::MtrrType;
use crate::regs::SysCfg;
use crate::snapshot::Snapshot;

/// WrMem and RdMem in a byte of the fixed ranges.
const DRAM_BITS: u8 = 0x18;

/// Whether the manual allows this combination of RdMem, WrMem and type.
///
/// Source: AMD APM 2, "Extended Fixed-Range MTRR Type Encodings".
const fn is_allowed(byte: u8) -> bool {
    matches!(
        (byte & DRAM_BITS, byte & 7),
        (0x00, 0 | 1 | 4 | 5) | (0x08, 0) | (0x10, 0 | 5) | (0x18, 0 | 1 | 4 | 6)
    )
}

/// Reports what the fixed ranges say of DRAM, or that it was not visible.
pub(super) fn fixed_dram(snapshot: &Snapshot, report: &mut impl FnMut(Finding)) {
    let Some(syscfg) = snapshot.syscfg.filter(|_| snapshot.has_fixed()) else {
        return;
    };
    let in_force = syscfg.contains(SysCfg::MTRR_FIX_DRAM_EN);
    if !snapshot.shows_dram_bits() {
        if in_force {
            report(Finding::new(Severity::Info, Kind::FixedDramHidden));
        }
        return;
    }
    let mut set: Option<Extent> = None;
    for (slot, byte) in fixed_bytes(snapshot) {
        let here = Extent::whole(slot.start, slot.end);
        if byte & DRAM_BITS != 0 {
            set = Some(set.map_or(here, |sum| sum.and(here)));
        }
        let known = MemType::from_field(byte & !DRAM_BITS).is_ok();
        if in_force && known && !is_allowed(byte) {
            let kind = Kind::FixedDramReserved { byte };
            report(Finding::at(Severity::Warning, kind, here));
        }
    }
    if let Some(extent) = set {
        report(Finding::at(Severity::Info, Kind::FixedDramVisible, extent));
    }
}

/// Reports memory above 4 GiB that TOP_MEM2 does not reach or does not make WB.
pub(super) fn top_of_memory(
    snapshot: &Snapshot,
    map: &MtrrMap,
    context: &Context<'_>,
    budget: &mut Budget,
    report: &mut impl FnMut(Finding),
) {
    const FOUR_GIB: u64 = 1 << 32;
    let top = top_mem2(snapshot).min(map.end());
    let Some(syscfg) = snapshot.syscfg.filter(|_| top > FOUR_GIB) else {
        return;
    };
    if !syscfg.contains(SysCfg::MTRR_TOM2_EN) {
        let extent = Extent::whole(FOUR_GIB, top);
        let severity = context.severity(Severity::Error, Severity::Warning);
        report(Finding::at(severity, Kind::Tom2Off, extent));
        return;
    }
    if !snapshot.def_type.enabled() {
        return;
    }
    let forced = syscfg.contains(SysCfg::TOM2_FORCE_WB);
    if forced && context.ram.is_some() {
        // What of it is RAM has been judged.
        return;
    }
    let mut others: Option<(Extent, MtrrType)> = None;
    let _ = pieces(
        snapshot,
        map,
        FOUR_GIB..top,
        budget,
        &mut |cube, memtype| {
            if memtype != MtrrType::Defined(MemType::WriteBack) {
                let here = Extent::of(cube);
                others =
                    Some(others.map_or((here, memtype), |(sum, first)| (sum.and(here), first)));
            }
            ControlFlow::Continue(())
        },
    );
    if let Some((extent, memtype)) = others {
        let kind = if forced {
            Kind::Tom2Overruled { memtype }
        } else {
            Kind::Tom2NotWriteBack
        };
        report(Finding::at(Severity::Warning, kind, extent));
    }
}

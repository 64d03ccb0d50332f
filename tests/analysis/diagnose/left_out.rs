//! RAM that a kernel leaves out of use, and ranges over what TOP_MEM2 makes write-back.
#![allow(clippy::single_range_in_vec_init)] // a memory map may have one range

use mtrr_pat::diagnose::{Context, Extent, Finding, Kind, Severity};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::findings;

const GIB: u64 = 1 << 30;
const UC: MtrrType = MtrrType::Defined(MemType::Uncachable);

/// 40 bits, default UC, these ranges.
fn machine(ranges: &[(u64, u64, MemType)]) -> Snapshot {
    let bits = PhysBits::new(40).expect("40 is a width");
    let mut cpu = Snapshot::empty(bits);
    cpu.cap = Some(MtrrCap::from_raw(8 | MtrrCap::WC.raw()));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    cpu.pat = Some(Pat::LINUX);
    for (slot, (start, size, memtype)) in cpu.variable.iter_mut().zip(ranges) {
        *slot = VariableMtrr::from_block(*start, *size, *memtype, bits).expect("a block");
    }
    cpu
}

fn whole(start: u64, end: u64) -> Option<Extent> {
    Some(Extent {
        start,
        end,
        bytes: end - start,
    })
}

fn kinds(found: &[Finding]) -> Vec<(Severity, Kind, Option<Extent>)> {
    found
        .iter()
        .map(|one| (one.severity, one.kind, one.extent))
        .collect()
}

#[test]
fn ram_given_up_is_told_from_ram_in_use() {
    let cpu = machine(&[(0, 2 * GIB, MemType::WriteBack)]);
    let ram = [0..2 * GIB, 4 * GIB..6 * GIB];
    let in_use = (
        Severity::Error,
        Kind::RamNotWriteBack { memtype: UC },
        whole(4 * GIB, 6 * GIB),
    );
    let context = Context::bare_metal().with_ram(&ram);
    assert_eq!(kinds(&findings(&[cpu], &context)), [in_use]);
    // The kernel gave it all up, with the hole before it.
    let given_up = [3 * GIB..6 * GIB];
    let lost = |start, end| {
        let kind = Kind::RamGivenUp { memtype: UC };
        (Severity::Warning, kind, whole(start, end))
    };
    let context = context.with_given_up(&given_up);
    assert_eq!(kinds(&findings(&[cpu], &context)), [lost(4 * GIB, 6 * GIB)]);
    // Only a part, in two overlapping ranges.
    let given_up = [5 * GIB..7 * GIB, 5 * GIB..6 * GIB];
    let context = context.with_given_up(&given_up);
    let in_use = (in_use.0, in_use.1, whole(4 * GIB, 5 * GIB));
    assert_eq!(
        kinds(&findings(&[cpu], &context)),
        [in_use, lost(5 * GIB, 6 * GIB)]
    );
    // What is write-back is no loss of the map's, whatever the kernel did with it.
    let given_up = [GIB..2 * GIB];
    let ram = [0..2 * GIB];
    let context = Context::bare_metal()
        .with_ram(&ram)
        .with_given_up(&given_up);
    assert_eq!(kinds(&findings(&[cpu], &context)), []);
}

#[test]
fn a_range_over_what_top_mem2_forces_is_named() {
    for memtype in [
        MemType::WriteProtected,
        MemType::Uncachable,
        MemType::WriteCombining,
        MemType::WriteThrough,
    ] {
        let over = (5 * GIB, GIB / 2, memtype);
        let mut cpu = machine(&[(0, 2 * GIB, MemType::WriteBack), over]);
        cpu.syscfg = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
        cpu.top_mem2 = 6 * GIB;
        let found = findings(&[cpu], &Context::bare_metal());
        let memtype = MtrrType::Defined(memtype);
        let kind = Kind::Tom2Overruled { memtype };
        let extent = whole(5 * GIB, 5 * GIB + GIB / 2);
        assert_eq!(kinds(&found), [(Severity::Warning, kind, extent)]);
        // Above TOP_MEM2 it is a device's.
        cpu.top_mem2 = 5 * GIB;
        let found = findings(&[cpu], &Context::bare_metal());
        assert!(
            found
                .iter()
                .all(|one| !matches!(one.kind, Kind::Tom2Overruled { .. }))
        );
        // A memory map says what of it is RAM.
        cpu.top_mem2 = 6 * GIB;
        let ram = [0..2 * GIB, 4 * GIB..5 * GIB];
        let context = Context::bare_metal().with_ram(&ram);
        assert_eq!(kinds(&findings(&[cpu], &context)), []);
    }
}

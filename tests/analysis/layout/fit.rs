//! A target that a driver gets without planning itself: exact, or with what is above RAM dropped.

use mtrr_pat::layout::{Edit, Fitted, LayoutError, Region};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

const GIB: u64 = 1 << 30;

/// QEMU's own: write-back by default, the hole below 4 GiB uncachable, six ranges, 40 bits.
fn qemu() -> Snapshot {
    let bits = PhysBits::new(40).unwrap();
    let mut map = Snapshot::empty(bits);
    map.cap = Some(MtrrCap::from_raw(6 | MtrrCap::WC.raw()));
    map.def_type = MtrrDefType::from_raw(MtrrDefType::E | 6);
    map.variable[0] = VariableMtrr::from_block(3 * GIB, GIB, MemType::Uncachable, bits).unwrap();
    map
}

fn framebuffer(now: &Snapshot, ram_end: Option<u64>, start: u64) -> Result<Fitted, LayoutError> {
    let mut edit = Edit::of(now)?;
    if let Some(end) = ram_end {
        edit.ram_end(end);
    }
    edit.set(Region::mmio(
        start,
        start + (16 << 20),
        MemType::WriteCombining,
    ))?;
    edit.fit()
}

/// What differs between two maps, from an address on and up to it.
fn differences(before: &Snapshot, after: &Snapshot) -> Vec<(u64, u64)> {
    let (before, after) = (MtrrMap::new(before), MtrrMap::new(after));
    before
        .differences(&after)
        .map(|run| (run.start, run.end))
        .collect()
}

#[test]
fn on_qemus_map_what_is_above_ram_becomes_uncachable_and_it_is_said() {
    let now = qemu();
    let start = 0xfd00_0000;
    let fits_not = LayoutError::DoesNotFit {
        planned: 7,
        exist: 6,
    };
    assert_eq!(
        framebuffer(&now, None, start),
        Err(fits_not),
        "where RAM ends is not known"
    );
    for (ram_end, from) in [(2 * GIB, 4 * GIB), (5 * GIB, 5 * GIB)] {
        let fitted = framebuffer(&now, Some(ram_end), start).unwrap();
        assert_eq!(fitted.dropped, Some(from..1 << 40));
        let said = fitted.to_string();
        assert!(
            said.contains(&format!("above it, {from:#x}-0xffffffffff")),
            "{said}"
        );
        let after = MtrrMap::new(&fitted.target);
        assert_eq!(
            after.at(start).memtype.defined(),
            Some(MemType::WriteCombining)
        );
        assert_eq!(after.at(from).memtype.defined(), Some(MemType::Uncachable));
        for (from_diff, end) in differences(&now, &fitted.target) {
            let buffer = (start, start + (16 << 20));
            assert!(
                (from_diff, end) == buffer || from_diff >= from,
                "{from_diff:#x}-{end:#x}"
            );
        }
    }
}

#[test]
fn a_map_that_fits_is_exact_and_drops_nothing() {
    let mut now = qemu();
    now.cap = Some(MtrrCap::from_raw(12 | MtrrCap::WC.raw()));
    let fitted = framebuffer(&now, Some(2 * GIB), 0xfd00_0000).unwrap();
    assert_eq!(fitted.dropped, None);
    assert_eq!(
        differences(&now, &fitted.target),
        [(0xfd00_0000, 0xfe00_0000)]
    );
}

#[test]
fn write_combining_over_ram_is_refused_unless_insisted_on() {
    let now = qemu();
    for ram_end in [None, Some(4 * GIB)] {
        let refused = framebuffer(&now, ram_end, GIB);
        assert_eq!(refused, Err(LayoutError::OverRam { addr: GIB }));
    }
    // Over its last page too, and above where RAM ends by the kernel's word not.
    assert_eq!(
        framebuffer(&now, None, 3 * GIB - (8 << 20)),
        Err(LayoutError::OverRam {
            addr: 3 * GIB - (8 << 20)
        })
    );
    assert_eq!(
        framebuffer(&now, None, 4 * GIB),
        Err(LayoutError::OverRam { addr: 4 * GIB })
    );
    let fitted = framebuffer(&now, Some(4 * GIB), 8 * GIB).unwrap();
    assert_eq!(
        MtrrMap::new(&fitted.target).at(8 * GIB).memtype.defined(),
        Some(MemType::WriteCombining)
    );
    let mut edit = Edit::of(&now).unwrap();
    edit.ram_end(3 * GIB);
    edit.set_over_ram(Region::ram(GIB, GIB + (16 << 20), MemType::WriteCombining))
        .unwrap();
    let fitted = edit.fit().unwrap();
    assert_eq!(
        MtrrMap::new(&fitted.target).at(GIB).memtype.defined(),
        Some(MemType::WriteCombining)
    );
    // What the kernel itself said is write-back counts as well.
    let mut edit = Edit::of(&now).unwrap();
    let ram = Region::ram(3 * GIB, 3 * GIB + (64 << 20), MemType::WriteBack);
    edit.set(ram).unwrap();
    let inside = 3 * GIB + (32 << 20);
    let buffer = |end| Region::mmio(inside, end, MemType::WriteCombining);
    let refused = Err(LayoutError::OverRam { addr: inside });
    assert_eq!(edit.set(buffer(4 * GIB)), refused);
    edit.ram_end(inside);
    assert_eq!(edit.set(buffer(4 * GIB)), Ok(()));
    // Below 1 MiB the fixed ranges say what is RAM.
    let mut fixed = now;
    fixed.cap = Some(MtrrCap::from_raw(
        8 | MtrrCap::WC.raw() | MtrrCap::FIX.raw(),
    ));
    fixed.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE | 6);
    fixed.fixed = [0x0606_0606_0606_0606; 11];
    let mut edit = Edit::of(&fixed).unwrap();
    let vga = Region::mmio(0xa_0000, 0xc_0000, MemType::WriteCombining);
    assert_eq!(edit.set(vga), Err(LayoutError::OverRam { addr: 0xa_0000 }));
    fixed.fixed[2] = 0;
    assert_eq!(Edit::of(&fixed).unwrap().set(vga), Ok(()));
}

/// Between two buffers above RAM nothing is write-combining, though one register for both would be
/// cheapest; and memory that was added there stays write-back.
#[test]
fn what_was_set_above_ram_is_kept_and_nothing_between_joins_it() {
    let mut now = qemu();
    let bits = now.phys_bits;
    let mut refused = 0;
    for vcnt in 1..=6 {
        now.cap = Some(MtrrCap::from_raw(vcnt | MtrrCap::WC.raw()));
        let mut edit = Edit::of(&now).unwrap();
        edit.ram_end(2 * GIB);
        for start in [8 * GIB, 8 * GIB + (3 << 29)] {
            let buffer = Region::mmio(start, start + (1 << 29), MemType::WriteCombining);
            edit.set(buffer).unwrap();
        }
        let Ok(fitted) = edit.fit() else {
            refused = vcnt;
            continue;
        };
        let map = MtrrMap::new(&fitted.target);
        let between = map.at(9 * GIB).memtype.defined();
        assert_ne!(between, Some(MemType::WriteCombining), "{vcnt}: {fitted}");
    }
    assert_eq!(refused, 2, "one for the hole, and one for both");
    // Uncachable by default: 1 GiB at 0 and above, and one more that is added above RAM.
    now.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    now.cap = Some(MtrrCap::from_raw(3 | MtrrCap::WC.raw()));
    let block = |start| VariableMtrr::from_block(start, GIB, MemType::WriteBack, bits).unwrap();
    now.variable[..3].copy_from_slice(&[block(0), block(9 * GIB), block(13 * GIB)]);
    let mut edit = Edit::of(&now).unwrap();
    edit.ram_end(GIB);
    let added = Region::ram(32 * GIB, 33 * GIB, MemType::WriteBack);
    edit.set(added).unwrap();
    let fitted = edit.fit().unwrap();
    assert!(fitted.dropped.is_some());
    let kept = MtrrMap::new(&fitted.target).at(32 * GIB).memtype;
    assert_eq!(kept.defined(), Some(MemType::WriteBack));
}

/// The stack it says it takes, on a map where all ways are tried.
#[cfg(target_arch = "x86_64")]
#[test]
fn it_takes_the_stack_it_says() {
    let now = qemu();
    let mut edit = Edit::of(&now).unwrap();
    edit.ram_end(2 * GIB);
    let buffer = Region::mmio(0xfd00_0000, 0xfe00_0000, MemType::WriteCombining);
    edit.set(buffer).unwrap();
    let fits = super::stack::bytes_taken(|| assert!(std::hint::black_box(&edit).fit().is_ok()));
    let plans = super::stack::bytes_taken(|| assert!(std::hint::black_box(&edit).plan().is_ok()));
    assert!(fits < 24 << 10 && plans < 8 << 10, "{fits}, {plans} bytes");
}

/// Where RAM ends is a number of the firmware's memory map: any is taken, to the next page.
#[test]
fn any_end_of_ram_will_do() {
    let now = qemu();
    for (ram_end, from) in [
        (0, 4 * GIB),
        (1, 4 * GIB),
        (5 * GIB + 1, 5 * GIB + 0x1000),
        (5 * GIB + 0x1000, 5 * GIB + 0x1000),
    ] {
        let fitted = framebuffer(&now, Some(ram_end), 0xfd00_0000);
        match fitted {
            Ok(fitted) => assert_eq!(fitted.dropped.map(|range| range.start), Some(from)),
            // RAM's own odd end takes registers too.
            Err(error) => assert!(matches!(error, LayoutError::DoesNotFit { .. }), "{error}"),
        }
    }
    for ram_end in [1 << 40, (1 << 40) - 1, u64::MAX, u64::MAX - 0xfff] {
        let refused = framebuffer(&now, Some(ram_end), 0xfd00_0000).map(drop);
        assert!(
            matches!(refused, Err(LayoutError::DoesNotFit { .. })),
            "{refused:?}"
        );
    }
}

//! Redundant ranges, ranges without effect, undefined overlaps and RAM, decided for every page of
//! a small space by looking.

use std::ops::Range;

use mtrr_pat::diagnose::{Context, Extent, Kind, Removal};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

use super::findings;
use crate::oracle::page_type;

const BITS: PhysBits = PhysBits::MIN;
const PAGE: u64 = 0x1000;
/// Where the 16 pages are: not at 0, so that base bits count.
const FIRST: u64 = 0x8765_0000;
const MIX: MtrrType = MtrrType::Undefined(Undefined::Mix);

fn page(n: u64) -> u64 {
    FIRST + n * PAGE
}

/// A range that matches only some of the 16 pages; in one of four the mask has holes.
fn small_range() -> impl Strategy<Value = VariableMtrr> {
    let mask = prop_oneof![3 => (0..5u64).prop_map(|zeros| (0xf << zeros) & 0xf), 1 => 0..16u64];
    let memtype = proptest::sample::select(MemType::ALL.as_slice());
    (mask, 0..16u64, memtype, proptest::bool::weighted(0.9)).prop_map(
        |(mask, base, memtype, valid)| VariableMtrr {
            base: page(base) | u64::from(memtype.raw()),
            mask: 0xffff_0000 | (mask * PAGE) | if valid { VariableMtrr::V } else { 0 },
        },
    )
}

fn snapshot(default: MemType, ranges: &[VariableMtrr]) -> Snapshot {
    let mut snapshot = Snapshot::empty(BITS);
    snapshot.cap = Some(MtrrCap::from_raw(ranges.len() as u64));
    snapshot.def_type = MtrrDefType::from_raw(MtrrDefType::E | u64::from(default.raw()));
    snapshot.variable[..ranges.len()].copy_from_slice(ranges);
    snapshot
}

fn without(snapshot: &Snapshot, pairs: &[u8]) -> Snapshot {
    let mut less = *snapshot;
    for pair in pairs {
        less.variable[usize::from(*pair)].mask = 0;
    }
    less
}

fn pages(snapshot: &Snapshot) -> Vec<MtrrType> {
    (0..16).map(|n| page_type(snapshot, page(n))).collect()
}

fn matches(range: VariableMtrr, n: u64) -> bool {
    (page(n) ^ range.base) & range.mask & !0xfff == 0
}

fn own_type(range: VariableMtrr) -> MtrrType {
    MtrrType::Defined(MemType::from_field(range.base as u8).unwrap())
}

/// The lowest address, the end and the number of bytes of the chosen pages.
fn extent(chosen: impl Fn(u64) -> bool) -> Option<Extent> {
    let chosen: Vec<u64> = (0..16).filter(|n| chosen(*n)).collect();
    Some(Extent {
        start: page(*chosen.first()?),
        end: page(*chosen.last()? + 1),
        bytes: chosen.len() as u64 * PAGE,
    })
}

/// Which ranges may be removed, and what the findings must say of each.
fn check_removable(snapshot: &Snapshot) {
    let map = pages(snapshot);
    let found = findings(&[*snapshot], &Context::bare_metal());
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for (n, range) in snapshot.variable_ranges().iter().enumerate() {
        let pair = n as u8;
        let unchanged = range.valid() && pages(&without(snapshot, &[pair])) == map;
        let holds = (0..16).any(|n| matches(*range, n) && map[n as usize] == own_type(*range));
        let said: Vec<_> = found
            .iter()
            .filter_map(|finding| match finding.kind {
                Kind::Redundant { pair, removal } => Some((pair, removal, true)),
                Kind::NoEffect { pair, removal, .. } => Some((pair, removal, false)),
                _ => None,
            })
            .filter(|(one, ..)| *one == pair)
            .collect();
        if !unchanged {
            assert_eq!(said, [], "range {pair} of {snapshot:x?}");
            continue;
        }
        let [(_, removal, redundant)] = said[..] else {
            panic!("range {pair} of {snapshot:x?}: {said:?}");
        };
        assert_eq!(redundant, holds, "range {pair} of {snapshot:x?}");
        match removal {
            Removal::Together => together.push(pair),
            Removal::Alone => alone.push(pair),
        }
    }
    let rest = without(snapshot, &together);
    assert_eq!(pages(&rest), map, "{together:?} of {snapshot:x?}");
    for pair in alone {
        assert_ne!(pages(&without(&rest, &[pair])), map, "{pair} {snapshot:x?}");
    }
}

fn check_overlaps(snapshot: &Snapshot) {
    let map = pages(snapshot);
    let ranges = snapshot.variable_ranges();
    let mut want = Vec::new();
    for (second, other) in ranges.iter().enumerate() {
        for (first, one) in ranges.iter().enumerate().take(second) {
            let both = [*one, *other];
            let types = both.map(own_type);
            let calm = types[0] == types[1]
                || types.contains(&MemType::Uncachable.into())
                || types.iter().all(|one| {
                    [MemType::WriteBack, MemType::WriteThrough]
                        .map(MtrrType::from)
                        .contains(one)
                });
            let here = extent(|n| {
                both.iter().all(|range| range.valid() && matches(*range, n))
                    && map[n as usize] == MIX
            });
            if let (false, Some(here)) = (calm, here) {
                want.push(([first as u8, second as u8], here));
            }
        }
    }
    let found = findings(&[*snapshot], &Context::bare_metal());
    let mut got: Vec<_> = found
        .iter()
        .filter_map(|finding| match finding.kind {
            Kind::UndefinedOverlap { pairs } => Some((pairs, finding.extent.unwrap())),
            _ => None,
        })
        .collect();
    got.sort_by_key(|(pairs, _)| *pairs);
    want.sort_by_key(|(pairs, _)| *pairs);
    assert_eq!(got, want, "{snapshot:x?}");
}

/// Bytes of RAM per type, and where the first and the last of them are.
fn check_ram(snapshot: &Snapshot, ram: &[Range<u64>]) {
    let map = pages(snapshot);
    let ranges: Vec<_> = ram
        .iter()
        .map(|ram| page(ram.start)..page(ram.end))
        .collect();
    let context = Context::bare_metal().with_ram(&ranges);
    let mut want = Vec::new();
    let kinds = MemType::ALL.map(MtrrType::from).into_iter().chain([MIX]);
    for memtype in kinds.filter(|memtype| *memtype != MemType::WriteBack.into()) {
        let is_ram = |n: u64| ram.iter().any(|ram| ram.contains(&n));
        let here = extent(|n| is_ram(n) && map[n as usize] == memtype);
        want.extend(here.map(|extent| (memtype, extent)));
    }
    let found = findings(&[*snapshot], &context);
    let mut got: Vec<_> = found
        .iter()
        .filter_map(|finding| match finding.kind {
            Kind::RamNotWriteBack { memtype } => Some((memtype, finding.extent.unwrap())),
            Kind::RamWriteProtected => {
                Some((MemType::WriteProtected.into(), finding.extent.unwrap()))
            }
            _ => None,
        })
        .collect();
    let order = |one: &(MtrrType, Extent)| format!("{one:?}");
    got.sort_by_key(order);
    want.sort_by_key(order);
    assert_eq!(got, want, "{snapshot:x?} {ram:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_range_is_reported_exactly_when_removing_it_changes_nothing(
        default in proptest::sample::select(MemType::ALL.as_slice()),
        ranges in proptest::collection::vec(small_range(), 0..12),
    ) {
        check_removable(&snapshot(default, &ranges));
    }

    #[test]
    fn undefined_overlaps_are_reported_pair_by_pair_with_their_bytes(
        default in proptest::sample::select(MemType::ALL.as_slice()),
        ranges in proptest::collection::vec(small_range(), 0..12),
    ) {
        check_overlaps(&snapshot(default, &ranges));
    }

    #[test]
    fn ram_that_is_not_write_back_is_counted_by_type(
        default in proptest::sample::select(MemType::ALL.as_slice()),
        ranges in proptest::collection::vec(small_range(), 0..8),
        ends in proptest::collection::vec((0..17u64, 0..17u64), 0..4),
    ) {
        // In any order, overlapping, some of them empty.
        let ram: Vec<_> = ends.into_iter().map(|(start, end)| start..end).collect();
        check_ram(&snapshot(default, &ranges), &ram);
    }
}

/// Every two ranges of one, two, four, eight or sixteen pages, every two types, two defaults.
#[test]
fn every_pair_of_blocks() {
    let mut blocks = Vec::new();
    for zeros in 0..5u64 {
        for base in (0..16).step_by(1 << zeros) {
            blocks.push((page(base), 0xffff_0000 | (((0xf << zeros) & 0xf) * PAGE)));
        }
    }
    let types = [
        MemType::WriteBack,
        MemType::WriteThrough,
        MemType::WriteCombining,
        MemType::Uncachable,
    ];
    for (base, mask) in &blocks {
        // By symmetry the first range may stay in the lower half.
        for (other_base, other_mask) in blocks.iter().filter(|_| *base < page(8)) {
            for memtype in types {
                for other in types {
                    let range = |base: u64, mask: u64, memtype: MemType| VariableMtrr {
                        base: base | u64::from(memtype.raw()),
                        mask: mask | VariableMtrr::V,
                    };
                    let two = [
                        range(*base, *mask, memtype),
                        range(*other_base, *other_mask, other),
                    ];
                    for default in [MemType::Uncachable, MemType::WriteBack] {
                        let snapshot = snapshot(default, &two);
                        check_removable(&snapshot);
                        check_overlaps(&snapshot);
                    }
                }
            }
        }
    }
}

/// A mask that leaves out every second page of a 52-bit space makes 2^39 blocks: the answers are
/// exact all the same, and at once.
#[test]
fn masks_with_holes_over_the_largest_space() {
    let mut cpu = Snapshot::empty(PhysBits::MAX);
    cpu.cap = Some(MtrrCap::from_raw(5));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    let odd_pages = |memtype: MemType| VariableMtrr {
        base: 0x1000 | u64::from(memtype.raw()),
        mask: 0x1000 | VariableMtrr::V,
    };
    cpu.variable[0] = odd_pages(MemType::WriteBack);
    cpu.variable[1] = odd_pages(MemType::WriteBack);
    // Every fourth page, inside the odd ones.
    cpu.variable[2] = VariableMtrr {
        base: 0x3000 | u64::from(MemType::WriteBack.raw()),
        mask: 0x3000 | VariableMtrr::V,
    };
    // Every fourth page again, but outside: it is needed.
    cpu.variable[3] = VariableMtrr {
        base: 0x2000 | u64::from(MemType::WriteCombining.raw()),
        mask: 0x3000 | VariableMtrr::V,
    };
    let space = 0..PhysBits::MAX.end();
    let ram = [space.clone()];
    let found = findings(&[cpu], &Context::bare_metal().with_ram(&ram));
    let said = |kind: Kind| found.iter().find(|finding| finding.kind == kind);
    let quarter = space.end / 4;
    for (pair, blocks) in [(0, 1 << 39), (1, 1 << 39), (2, 1 << 38), (3, 1 << 38)] {
        let holes = said(Kind::MaskHoles { pair, blocks }).unwrap();
        assert_eq!(holes.bytes(), blocks * PAGE);
    }
    let redundant = |pair, removal| Kind::Redundant { pair, removal };
    assert!(said(redundant(0, Removal::Alone)).is_some());
    assert!(said(redundant(1, Removal::Together)).is_some());
    assert!(said(redundant(2, Removal::Together)).is_some());
    let write_combining = said(Kind::RamNotWriteBack {
        memtype: MemType::WriteCombining.into(),
    });
    assert_eq!(write_combining.unwrap().bytes(), quarter);
    let uncachable = said(Kind::RamNotWriteBack {
        memtype: MemType::Uncachable.into(),
    });
    assert_eq!(uncachable.unwrap().bytes(), quarter);
    assert!(said(Kind::Undecided).is_none());
    assert_eq!(found.len(), 4 + 3 + 2 + 1, "and no PAT: {found:#?}");
}

//! The lookup against an evaluator that does the obvious thing for every page.

mod cases;

use mtrr_pat::lookup::{MtrrMap, PageSize, Run, Source, Uniformity};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use crate::oracle::{Rng, edges, page_type, register_file};

const PAGE: u64 = 0x1000;
const WB: u64 = 6;
const UC: u64 = 0;
const E: u64 = 1 << 11;
const FE: u64 = 1 << 10;

fn bits(width: u8) -> PhysBits {
    PhysBits::new(width).unwrap()
}

/// A machine with MTRRs on, without fixed ranges.
fn machine(width: u8, default: u64, ranges: &[(u64, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::empty(bits(width));
    snapshot.cap = Some(MtrrCap::from_raw(ranges.len() as u64));
    snapshot.def_type = MtrrDefType::from_raw(E | default);
    for (slot, &(base, mask)) in snapshot.variable.iter_mut().zip(ranges) {
        *slot = VariableMtrr { base, mask };
    }
    snapshot
}

/// The runs of `pages` pages from `start`, page by page.
fn runs_by_page(snapshot: &Snapshot, start: u64, pages: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for page in 0..pages {
        let start = start + page * PAGE;
        let memtype = page_type(snapshot, start);
        match runs.last_mut() {
            Some(run) if run.memtype == memtype => run.end += PAGE,
            _ => runs.push(Run {
                start,
                end: start + PAGE,
                memtype,
            }),
        }
    }
    runs
}

/// Compares everything the map says about a window with the evaluator.
fn check_window(snapshot: &Snapshot, start: u64, pages: u64) {
    let map = MtrrMap::new(snapshot);
    let want = runs_by_page(snapshot, start, pages);
    let end = start + pages * PAGE;
    let got: Vec<Run> = map.runs_in(start..end).collect();
    assert_eq!(got, want, "{snapshot:?}");
    for run in &want {
        assert_eq!(map.at(run.start).memtype, run.memtype, "{snapshot:?}");
        assert_eq!(map.memtype_at(run.end - 1), run.memtype, "{snapshot:?}");
        assert_eq!(
            map.over(run.start..run.end),
            Uniformity::Uniform(run.memtype)
        );
    }
    if let [first, _, ..] = want[..] {
        assert_eq!(
            map.over(start..end),
            Uniformity::Mixed(first),
            "{snapshot:?}"
        );
    }
}

/// A mask for the scale: address bits `shift..shift + bits` are the small space, and bits above
/// it, up to the width, are set so that the small space has no alias.
fn small(base: u64, mask: u64, shift: u32, bits: u32, memtype: u64) -> (u64, u64) {
    let above = (u64::MAX << (shift + bits)) & 0xffff_ffff;
    (base << shift | memtype, mask << shift | above | 0x800)
}

/// The distinct ranges of a space of `1 << bits` blocks: base cut to the mask.
fn distinct(bits: u32) -> Vec<(u64, u64)> {
    let all = 0..1u64 << bits;
    all.clone()
        .flat_map(|mask| all.clone().map(move |base| (base, mask)))
        .filter(|(base, mask)| base & !mask == 0)
        .collect()
}

/// Every base and mask of a space of 16 pages: base bits under the mask, masks with holes and
/// the mask 0 included; with aliases above and without.
#[test]
fn every_pair_of_sixteen_pages() {
    for upper in [0, 0xffff_0000] {
        for base in 0..16u64 {
            for mask in 0..16u64 {
                for (memtype, default) in [(WB, UC), (UC, WB), (4, 6), (6, 4), (6, 6), (3, 6)] {
                    let pair = (base << 12 | memtype, mask << 12 | upper | 0x800);
                    check_window(&machine(32, default, &[pair]), 0, 16);
                    check_window(&machine(32, default, &[pair]), 0xffff_8000, 8);
                }
            }
        }
    }
}

/// The same with the 16 blocks filling the whole 32-bit space, so that its end takes part.
#[test]
fn every_pair_of_sixteen_blocks_up_to_the_end() {
    for base in 0..16u64 {
        for mask in 0..16u64 {
            for (memtype, default) in [(WB, UC), (UC, WB), (6, 6), (1, 4)] {
                let pair = small(base, mask, 28, 4, memtype);
                let snapshot = machine(32, default, &[pair]);
                let map = MtrrMap::new(&snapshot);
                let mut want: Vec<Run> = Vec::new();
                for block in 0..16u64 {
                    let (start, end) = (block << 28, (block + 1) << 28);
                    let memtype = page_type(&snapshot, start);
                    match want.last_mut() {
                        Some(run) if run.memtype == memtype => run.end = end,
                        _ => want.push(Run {
                            start,
                            end,
                            memtype,
                        }),
                    }
                }
                assert_eq!(map.runs().collect::<Vec<_>>(), want, "{snapshot:?}");
            }
        }
    }
}

/// Two ranges: every pair of distinct ranges of 16 pages, every pair of types, reserved included.
#[test]
fn every_two_ranges_of_sixteen_pages() {
    let ranges = distinct(4);
    assert_eq!(ranges.len(), 81);
    for (i, one) in ranges.iter().enumerate() {
        for two in &ranges[i..] {
            for types in 0..36u64 {
                let [a, b] = [types % 6, types / 6].map(|index| [0, 1, 4, 5, 6, 7][index as usize]);
                let pairs = [small(one.0, one.1, 12, 4, a), small(two.0, two.1, 12, 4, b)];
                let default = [0, 6, 4, 1, 5, 2][((types + i as u64) % 6) as usize];
                check_window(&machine(32, default, &pairs), 0, 17);
            }
        }
    }
}

/// Three ranges: every triple of distinct ranges of 8 pages, every triple of types.
#[test]
fn every_three_ranges_of_eight_pages() {
    let ranges = distinct(3);
    assert_eq!(ranges.len(), 27);
    let mut turn = 0;
    for (i, one) in ranges.iter().enumerate() {
        for (j, two) in ranges.iter().enumerate().skip(i) {
            for three in &ranges[j..] {
                for types in 0..216u64 {
                    let pick =
                        |place: u32| [0, 1, 4, 5, 6, 3][(types / 6u64.pow(place) % 6) as usize];
                    let pairs = [
                        small(one.0, one.1, 12, 3, pick(0)),
                        small(two.0, two.1, 12, 3, pick(1)),
                        small(three.0, three.1, 12, 3, pick(2)),
                    ];
                    turn += 1;
                    let default = [0, 6, 4, 1, 5, 2][turn % 6];
                    check_window(&machine(32, default, &pairs), 0, 9);
                }
            }
        }
    }
}

/// Below 1 MiB: every byte value in every field, with E, FE and FIX each on and off, with RdMem
/// and WrMem hidden, visible and absent; and what lies above.
#[test]
fn everything_below_one_mebibyte() {
    for value in 0..256u64 {
        for switches in 0..24u64 {
            let mut snapshot = machine(
                36,
                [4, 6, 0][value as usize % 3],
                &[(0x4_0001, 0xf_fffc_0800)],
            );
            let fix = if switches & 1 != 0 { 0x100 } else { 0 };
            snapshot.cap = Some(MtrrCap::from_raw(1 | fix));
            let flags = [E | FE, E, FE, 0][(switches / 2 % 4) as usize];
            snapshot.def_type = MtrrDefType::from_raw(flags | snapshot.def_type.raw() & 0xff);
            snapshot.syscfg =
                [None, Some(1 << 18), Some(1 << 19)][(switches / 8) as usize].map(SysCfg::from_raw);
            let mut field = 0u64;
            for word in &mut snapshot.fixed {
                for byte in 0..8 {
                    // Neighbours are sometimes equal, sometimes not; each field sees each value.
                    *word |= ((value + field / 3 * 37) & 0xff) << (8 * byte);
                    field += 1;
                }
            }
            check_window(&snapshot, 0, 264);
        }
    }
}

/// The boundary of a range, computed, against the one found by looking: every base and mask of
/// 6 bits, from every address, at the low end and at the high end of the space.
#[test]
fn next_change_is_the_one_found_by_looking() {
    for (width, shift) in [(32, 26), (52, 46), (40, 12)] {
        let wide = bits(width);
        let above = (u64::MAX << (shift + 6)) & (wide.end() - 1);
        for mask in 0..64u64 {
            for base in 0..64u64 {
                let range = VariableMtrr {
                    base: base << shift,
                    mask: mask << shift | above,
                };
                for block in 0..64u64 {
                    let here = range.matches(block << shift, wide);
                    let found =
                        (block + 1..64).find(|next| range.matches(next << shift, wide) != here);
                    let beyond = if here && above != 0 {
                        64 << shift
                    } else {
                        wide.end()
                    };
                    let want = found.map_or(beyond, |next| next << shift);
                    for inside in [0, 1, (1 << shift) - 1] {
                        assert_eq!(
                            range.next_change((block << shift) + inside, wide),
                            want,
                            "{range:?} {block}"
                        );
                    }
                }
            }
        }
    }
    assert_eq!(
        VariableMtrr {
            base: 0,
            mask: 0x1000
        }
        .next_change(u64::MAX, bits(40)),
        bits(40).end()
    );
}

/// Everything the map says about one register file, as far as edges and random windows reach.
fn check_anywhere(snapshot: &Snapshot, rng: &mut Rng) {
    let map = MtrrMap::new(snapshot);
    let edges = edges(snapshot, rng);
    for edge in &edges {
        assert_eq!(
            map.memtype_at(*edge),
            page_type(snapshot, *edge),
            "{edge:#x} {snapshot:?}"
        );
    }
    // Every run, up to a number that maps without holes never reach.
    let mut runs: Vec<Run> = map.runs().take(300).collect();
    let complete = runs.len() < 300;
    let mut at = 0;
    let mut edge = edges.iter().peekable();
    for run in &runs {
        assert_eq!(run.start, at, "{snapshot:?}");
        assert!(run.end > run.start);
        for inside in [run.start, run.end - 1, run.start + rng.below(run.bytes())] {
            assert_eq!(
                page_type(snapshot, inside),
                run.memtype,
                "{inside:#x} {snapshot:?}"
            );
        }
        while let Some(inside) = edge.next_if(|edge| **edge < run.end) {
            assert_eq!(
                page_type(snapshot, *inside),
                run.memtype,
                "{inside:#x} {snapshot:?}"
            );
        }
        at = run.end;
    }
    assert!(!complete || at == 1 << snapshot.phys_bits.get());
    // Maximal; runs cut for their number of pieces are hundreds of pages long.
    let length = runs.len();
    runs.dedup_by(|next, run| next.memtype == run.memtype && run.bytes() < 512 * PAGE);
    assert_eq!(runs.len(), length, "{snapshot:?}");
    // Page by page around one edge.
    let around = edges[rng.below(edges.len() as u64) as usize] & !(PAGE - 1);
    let start = around.saturating_sub(8 * PAGE);
    let pages = (((1 << snapshot.phys_bits.get()) - start) / PAGE).min(24);
    check_window(snapshot, start, pages);
}

#[test]
fn a_hundred_thousand_random_register_files() {
    let mut rng = Rng(20260101);
    let (mut with_holes, mut undefined) = (0, 0);
    for _ in 0..100_000 {
        let snapshot = register_file(&mut rng);
        check_anywhere(&snapshot, &mut rng);
        let ranges = snapshot
            .variable_ranges()
            .iter()
            .filter(|range| range.valid());
        with_holes += u32::from(
            ranges
                .clone()
                .any(|range| range.block(snapshot.phys_bits).is_none()),
        );
        let map = MtrrMap::new(&snapshot);
        undefined += u32::from(
            map.runs()
                .take(300)
                .any(|run| run.memtype.defined().is_none()),
        );
    }
    // The generator does reach what it is there for.
    assert!(with_holes > 10_000, "{with_holes}");
    assert!(undefined > 10_000, "{undefined}");
}

/// The largest page, against looking at all its 4 KiB pages (2 MiB) or all its edges (1 GiB).
#[test]
fn largest_page_has_one_type() {
    let mut rng = Rng(7);
    let mut seen = [0u32; 3];
    for _ in 0..1500 {
        let snapshot = register_file(&mut rng);
        let map = MtrrMap::new(&snapshot);
        let edges = edges(&snapshot, &mut rng);
        let addr = edges[rng.below(edges.len() as u64) as usize];
        let size = map.largest_page(addr);
        seen[size as usize] += 1;
        let two = addr & !0x1f_ffff;
        let two_is_one = (0..512)
            .all(|page| page_type(&snapshot, two + page * PAGE) == page_type(&snapshot, two));
        assert_eq!(
            size >= PageSize::Size2M,
            two_is_one,
            "{addr:#x} {snapshot:?}"
        );
        let giga = addr & !0x3fff_ffff;
        let inside = edges
            .iter()
            .filter(|edge| (giga..giga + (1 << 30)).contains(*edge));
        let giga_looks_one = inside
            .clone()
            .all(|edge| page_type(&snapshot, *edge) == page_type(&snapshot, giga));
        if size == PageSize::Size1G {
            assert!(giga_looks_one, "{addr:#x} {snapshot:?}");
        } else {
            // Some run begins inside it, or it could not be shown that none does.
            let over = map.over(giga..giga + (1 << 30));
            assert!(over.uniform().is_none());
            if let Uniformity::Mixed(run) = over {
                assert_ne!(page_type(&snapshot, run.end), page_type(&snapshot, giga));
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

proptest::proptest! {
    /// Any words at all: the map agrees with the evaluator and nothing panics.
    #[test]
    fn any_words(
        words in proptest::collection::vec(proptest::prelude::any::<u64>(), 12..=96),
        width in 32u8..=52,
        addr in proptest::prelude::any::<u64>(),
    ) {
        let mut snapshot = Snapshot::empty(bits(width));
        snapshot.cap = Some(MtrrCap::from_raw(words[0]));
        snapshot.def_type = MtrrDefType::from_raw(words[1] | E);
        snapshot.syscfg = (words[2] & 1 != 0).then(|| SysCfg::from_raw(words[2]));
        snapshot.top_mem2 = words[3];
        for (slot, pair) in snapshot.variable.iter_mut().zip(words[4..].chunks_exact(2)) {
            *slot = VariableMtrr { base: pair[0], mask: pair[1] };
        }
        for (slot, word) in snapshot.fixed.iter_mut().zip(&words[1..]) {
            *slot = *word;
        }
        let map = MtrrMap::new(&snapshot);
        for addr in [addr, addr >> (64 - width), addr & 0xf_ffff] {
            proptest::prop_assert_eq!(map.at(addr).memtype, page_type(&snapshot, addr));
            proptest::prop_assert_eq!(map.memtype_at(addr), page_type(&snapshot, addr));
        }
        let start = (addr >> (64 - width)) & !(PAGE - 1);
        check_window(&snapshot, start, ((map.end() - start) / PAGE).min(40));
    }
}

#[test]
fn says_why() {
    let mut snapshot = machine(
        40,
        UC,
        &[(6, 0xff_8000_0800), (0x4000_0004, 0xff_c000_0800)],
    );
    snapshot.cap = Some(MtrrCap::from_raw(0x102));
    snapshot.def_type = MtrrDefType::from_raw(E | FE);
    snapshot.fixed = [0x0606_0606_0606_0606; 11];
    let source = |snapshot: &Snapshot, addr| MtrrMap::new(snapshot).at(addr).source;
    assert!(
        matches!(source(&snapshot, 0xc_1234), Source::Fixed(slot) if slot.register == 3 && slot.byte == 1)
    );
    assert_eq!(
        source(&snapshot, 0x10_0000),
        Source::Variable { pairs: 0b01 }
    );
    assert_eq!(
        source(&snapshot, 0x4000_0000),
        Source::Variable { pairs: 0b11 }
    );
    assert_eq!(source(&snapshot, 0x1_0000_0000), Source::Default);
    assert_eq!(source(&snapshot, 1 << 40), Source::BeyondWidth);
    assert_eq!(
        MtrrMap::new(&snapshot).at(0x4000_0000).to_string(),
        "write-through (variable ranges 0, 1)"
    );

    snapshot.syscfg = Some(SysCfg::from_raw(0b11 << 21));
    // Bits below 23 are not part of the register.
    snapshot.top_mem2 = 0x1_8000_0000 | 0x7f_ffff;
    assert_eq!(source(&snapshot, 0x1_7fff_ffff), Source::TopMem2);
    assert_eq!(source(&snapshot, 0x1_8000_0000), Source::Default);
    for bit in [21, 22] {
        let mut one = snapshot;
        one.syscfg = Some(SysCfg::from_raw(1 << bit));
        assert_eq!(source(&one, 0x1_0000_0000), Source::Default);
    }

    snapshot.def_type = MtrrDefType::from_raw(FE);
    assert_eq!(source(&snapshot, 0x1_0000_0000), Source::Disabled);
    assert_eq!(source(&snapshot, 0), Source::Disabled);
    snapshot.cap = None;
    assert_eq!(source(&snapshot, 0), Source::NoMtrr);
}

/// Pieces without end: two ranges take turns page by page and together give one type. The runs
/// are cut, the query does not guess, and both come back at once.
#[test]
fn endless_pieces_are_bounded() {
    let snapshot = machine(52, UC, &[(0x0006, 0x1800), (0x1006, 0x1800)]);
    let map = MtrrMap::new(&snapshot);
    let memtype = MtrrType::Defined(MemType::WriteBack);
    let runs: Vec<Run> = map.runs().take(1000).collect();
    assert_eq!(runs.len(), 1000);
    assert!(
        runs.iter()
            .all(|run| run.memtype == memtype && run.bytes() >= 512 * PAGE)
    );
    assert!(runs.windows(2).all(|two| two[0].end == two[1].start));
    assert!(matches!(map.over(0..map.end()), Uniformity::Unproven(run) if run.memtype == memtype));
    // As many pieces as a 2 MiB page has pages are looked at.
    assert_eq!(map.largest_page(0x1234_5678), PageSize::Size2M);

    // Holes that change the type are runs of their own, and one is enough for an answer.
    let stripes = machine(52, UC, &[(0x1006, 0x1800)]);
    let map = MtrrMap::new(&stripes);
    let runs: Vec<Run> = map.runs().take(1000).collect();
    assert!(runs.iter().all(|run| run.bytes() == PAGE));
    assert!(matches!(map.over(0..map.end()), Uniformity::Mixed(run) if run.end == PAGE));

    // Holes under a type they cannot change cost nothing.
    for pairs in [&[(0x1006, 0x1800), (0, 0x800)][..], &[(0x1000, 0x1800)]] {
        let map = MtrrMap::new(&machine(52, UC, pairs));
        assert_eq!(map.runs().take(3).count(), 1);
    }
}

#[test]
fn ranges_of_bytes() {
    let snapshot = machine(36, UC, &[(6, 0xf_8000_0800)]);
    let map = MtrrMap::new(&snapshot);
    let wb = MtrrType::Defined(MemType::WriteBack);
    assert_eq!(map.over(5..0x7fff_ffff).uniform(), Some(wb));
    assert_eq!(map.over(5..0x8000_0001).uniform(), None);
    assert_eq!(map.over(7..7).uniform(), Some(wb));
    let beyond = MtrrType::Undefined(Undefined::BeyondWidth);
    assert_eq!(map.over(1 << 36..u64::MAX).uniform(), Some(beyond));
    assert!(
        matches!(map.over(0x8000_0000..u64::MAX), Uniformity::Mixed(run) if run.end == 1 << 36)
    );
    let [start, end] = [9, 5];
    assert_eq!(map.runs_in(start..end).count(), 0);
    assert_eq!(map.runs_in(1 << 36..u64::MAX).count(), 0);
    assert_eq!(
        map.runs().map(|run| run.to_string()).collect::<Vec<_>>(),
        [
            "0x0-0x7fffffff write-back",
            "0x80000000-0xfffffffff uncachable",
        ]
    );
    assert_eq!(map.largest_page(u64::MAX), PageSize::Size4K);
    assert_eq!(map.largest_page(0xf_ffff_ffff), PageSize::Size1G);
    assert_eq!(PageSize::Size1G.bytes(), 1 << 30);
}

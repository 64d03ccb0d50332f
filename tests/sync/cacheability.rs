//! When WBINVD is owed: against a page-by-page evaluator written from the manuals' tables alone.

use mtrr_pat::cacheability::InForce;
use mtrr_pat::combine::CombineRule;
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::{FIXED_RANGES, PhysBits};
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::sim::firmware_map;
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

const WIDTH: u8 = 36;
const GIB: u64 = 1 << 30;
/// Below here ranges may be as small as a page, above it only of whole GiB.
const SMALL: u64 = 4 << 20;

/// The manuals' tables, MTRR by PAT (UC WC WT WP WB UC-). `-` is any type that is not cached.
fn page_type(rule: CombineRule, mtrr: MemType, pat: PatType) -> &'static str {
    let rows = match rule {
        CombineRule::Intel => [
            "-  -  -  -  -  -",
            "-  -  -  -  -  -",
            "-  -  WT WP WT -",
            "-  -  WT WP WP -",
            "-  -  WT WP WB -",
        ],
        CombineRule::Amd => [
            "-  -  -  -  -  -",
            "-  -  -  -  -  -",
            "-  -  WT -  WT -",
            "-  -  -  WP WP -",
            "-  -  WT WP WB -",
        ],
    };
    let row = MemType::ALL.iter().position(|t| *t == mtrr).unwrap();
    let column = PatType::ALL.iter().position(|t| *t == pat).unwrap();
    rows[row].split_whitespace().nth(column).unwrap()
}

/// Whether a line cached under the first type is stale, or wrongly modified, under the second.
fn harmed(before: &str, after: &str) -> bool {
    match before {
        "WB" => after != "WB",
        "WT" | "WP" => after == "-",
        _ => false,
    }
}

/// The MTRR type of an address; `None` where the manuals leave it undefined.
fn mtrr_at(of: &Snapshot, routing: &Snapshot, addr: u64) -> Option<MemType> {
    let Some(cap) = of.cap else {
        return Some(MemType::WriteBack);
    };
    let def = of.def_type.raw();
    if def & 0x800 == 0 {
        return Some(MemType::Uncachable);
    }
    if addr < 0x10_0000 && def & 0x400 != 0 && cap.raw() & 0x100 != 0 {
        let shown = of.fixed_dram_bits || of.syscfg.is_some_and(|word| word.raw() & 1 << 19 != 0);
        for (range, word) in FIXED_RANGES.iter().zip(of.fixed) {
            if (range.base..range.base + 8 * range.step).contains(&addr) {
                let byte = (word >> (8 * ((addr - range.base) / range.step))) as u8;
                return MemType::from_field(if shown { byte & !0x18 } else { byte }).ok();
            }
        }
    }
    let width = (1u64 << WIDTH) - 0x1000;
    let mut types = Vec::new();
    for pair in &of.variable[..usize::from(cap.raw() as u8).min(40)] {
        let mask = pair.mask & width;
        if pair.mask & 0x800 != 0 && addr & mask == pair.base & mask {
            types.push(MemType::from_field(pair.base as u8).ok());
        }
    }
    types.sort();
    types.dedup();
    match types[..] {
        [] => {
            let forced = routing.syscfg.is_some_and(|s| s.raw() >> 21 & 3 == 3)
                && (4 * GIB..routing.top_mem2).contains(&addr);
            if forced {
                Some(MemType::WriteBack)
            } else {
                MemType::from_field(def as u8).ok()
            }
        }
        [one] => one,
        _ if types.contains(&Some(MemType::Uncachable)) => Some(MemType::Uncachable),
        [Some(MemType::WriteThrough), Some(MemType::WriteBack)] => Some(MemType::WriteThrough),
        _ => None,
    }
}

/// RdMem and WrMem of an address, where both registers show them.
fn dram_bits(of: &Snapshot, addr: u64) -> Option<u8> {
    let shown = of.fixed_dram_bits || of.syscfg.is_some_and(|word| word.raw() & 1 << 19 != 0);
    let words = FIXED_RANGES.iter().zip(of.fixed);
    let mut of_addr = words.filter(|(r, _)| (r.base..r.base + 8 * r.step).contains(&addr));
    let (range, word) = of_addr.next()?;
    let in_force = of.cap?.raw() & 0x100 != 0 && of.def_type.raw() & 0xc00 == 0xc00;
    let byte = (word >> (8 * ((addr - range.base) / range.step))) as u8;
    (shown && in_force).then_some(byte & 0x18)
}

/// One address of two CPUs' worth of registers.
fn harmed_at(before: &Snapshot, after: &Snapshot, rule: CombineRule, addr: u64) -> bool {
    let found = mtrr_at(before, before, addr);
    let given = mtrr_at(after, before, addr);
    let rerouted = match (dram_bits(before, addr), dram_bits(after, addr)) {
        (Some(found), Some(given)) => found != given,
        _ => false,
    };
    // The worst of what is not defined.
    let found = found.unwrap_or(MemType::WriteBack);
    let given = given.unwrap_or(MemType::Uncachable);
    let alone = |mtrr| page_type(rule, mtrr, PatType::WriteBack);
    let slots = (0..8).any(|slot| {
        let pats = (before.pat.unwrap(), after.pat.unwrap());
        let (old, new) = (pats.0.slot(slot).unwrap(), pats.1.slot(slot).unwrap());
        harmed(page_type(rule, found, old), page_type(rule, given, new))
    });
    slots || harmed(alone(found), alone(given)) || (alone(found) != "-" && rerouted)
}

/// Every page below 4 MiB, and one address of each GiB above: types are the same all over it.
fn harmed_anywhere(before: &Snapshot, after: &Snapshot, rule: CombineRule) -> bool {
    let pages = (0..SMALL).step_by(0x1000);
    let gib = (0..1 << WIDTH).step_by(GIB as usize);
    pages
        .chain([SMALL])
        .chain(gib.skip(1))
        .any(|addr| harmed_at(before, after, rule, addr))
}

fn owed(before: &Snapshot, after: &Snapshot, rule: CombineRule) -> bool {
    InForce::from(before).loses_cacheability(after.into(), rule)
}

/// A map of one type, and a PAT of one type.
fn plain(mtrr: MemType, pat: PatType) -> Snapshot {
    let mut map = Snapshot::empty(PhysBits::new(WIDTH).unwrap());
    map.cap = Some(MtrrCap::from_raw(0xd0a));
    map.def_type = MtrrDefType::from_raw(0x800 | u64::from(mtrr.raw()));
    map.pat = Some(Pat::from_types([pat; 8]));
    map
}

const RULES: [CombineRule; 2] = [CombineRule::Intel, CombineRule::Amd];

#[test]
fn every_pair_of_types() {
    let all = MemType::ALL
        .into_iter()
        .flat_map(|mtrr| PatType::ALL.map(|pat| (mtrr, pat)));
    let (mut flushes, mut count) = (0, 0);
    for rule in RULES {
        for before in all.clone() {
            for after in all.clone() {
                let (found, given) = (plain(before.0, before.1), plain(after.0, after.1));
                let want = harmed_anywhere(&found, &given, rule);
                assert_eq!(
                    owed(&found, &given, rule),
                    want,
                    "{rule:?} {before:?} {after:?}"
                );
                flushes += usize::from(want);
                count += 1;
            }
        }
    }
    assert_eq!(count, 2 * 30 * 30);
    assert!(flushes > 300 && flushes < 900, "{flushes}");
}

/// Without page tables, as a table: rows from, columns to, UC WC WT WP WB.
#[test]
fn the_rule_for_mtrr_types() {
    let table = MemType::ALL.map(|from| {
        MemType::ALL.map(|to| {
            let of = |mtrr| plain(mtrr, PatType::WriteBack);
            u8::from(owed(&of(from), &of(to), CombineRule::Intel))
        })
    });
    let expected = [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
    ];
    assert_eq!(table, expected);
}

#[test]
fn usual_changes() {
    let map = firmware_map();
    let rule = CombineRule::Intel;
    let with = |change: fn(&mut Snapshot)| {
        let mut other = map;
        change(&mut other);
        other
    };
    assert!(!owed(&map, &map, rule));
    // After S3: off, whatever the rest holds, and whatever the PAT.
    let off = with(|map| {
        map.def_type = map.def_type.disabled();
        map.pat = Some(Pat::LINUX);
    });
    assert!(!owed(&off, &map, rule));
    assert!(owed(&map, &off, rule));
    // One frame buffer in the hole: UC to WC and back.
    let buffer = with(|map| {
        let bits = map.phys_bits;
        let block = VariableMtrr::from_block(0xc000_0000, 1 << 28, MemType::WriteCombining, bits);
        map.variable[3] = block.unwrap();
    });
    assert!(!owed(&map, &buffer, rule) && !owed(&buffer, &map, rule));
    // RAM moved to another pair, or said twice.
    let moved = with(|map| map.variable.swap(0, 7));
    let twice = with(|map| map.variable[8] = map.variable[1]);
    assert!(!owed(&map, &moved, rule) && !owed(&moved, &twice, rule));
    // More RAM, less RAM.
    let less = with(|map| map.variable[2].mask = 0);
    assert!(!owed(&less, &map, rule) && owed(&map, &less, rule));
    // One page of a fixed range.
    let rom = with(|map| map.fixed[10] &= !0xff);
    assert!(!owed(&rom, &map, rule) && owed(&map, &rom, rule));
    // WC in place of WT in slot 1: only where something is cacheable.
    let linux = with(|map| map.pat = Some(Pat::LINUX));
    assert!(owed(&map, &linux, rule));
    let uncachable = with(|map| {
        map.variable = Snapshot::empty(map.phys_bits).variable;
        map.fixed = [0; 11];
    });
    let mut uncachable_linux = uncachable;
    uncachable_linux.pat = linux.pat;
    assert!(!owed(&uncachable, &uncachable_linux, rule));
    // No MTRRs: the PAT alone.
    let guest = Snapshot {
        cap: None,
        ..Snapshot::empty(map.phys_bits)
    };
    let pats = [Pat::POWER_ON, Pat::LINUX];
    let in_guest = pats.map(|pat| InForce { map: &guest, pat });
    assert!(in_guest[0].loses_cacheability(in_guest[1], rule));
    assert!(!in_guest[1].loses_cacheability(in_guest[1], rule));
}

/// TOP_MEM2 and SYSCFG of a target are another CPU's: they are never written.
#[test]
fn what_is_forced_wb_is_what_this_cpu_forces() {
    let mut have = plain(MemType::WriteBack, PatType::WriteBack);
    let mut want = plain(MemType::Uncachable, PatType::WriteBack);
    for n in 0..4 {
        let bits = have.phys_bits;
        let ram = VariableMtrr::from_block(n * GIB, GIB, MemType::WriteBack, bits);
        (have.variable[n as usize], want.variable[n as usize]) = (ram.unwrap(), ram.unwrap());
    }
    let forced = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
    want.syscfg = forced;
    want.top_mem2 = 1 << WIDTH;
    let rule = CombineRule::Amd;
    assert!(owed(&have, &want, rule), "nothing forces it here");
    have.syscfg = forced;
    have.top_mem2 = 1 << WIDTH;
    assert!(!owed(&have, &want, rule), "all of it is forced");
    have.top_mem2 = (1 << WIDTH) - GIB;
    assert!(owed(&have, &want, rule), "the last GiB is not");
}

/// A line cached under an address that is then routed to devices, or back, is another memory's.
#[test]
fn rdmem_and_wrmem_count_where_they_are_visible() {
    let mut have = plain(MemType::WriteBack, PatType::WriteBack);
    have.def_type = MtrrDefType::from_raw(0xc06);
    have.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
    have.fixed_dram_bits = true;
    let mut want = have;
    want.fixed[4] = 0x1e1e_1e16_1e1e_1e1e;
    let rule = CombineRule::Amd;
    assert!(harmed_anywhere(&have, &want, rule) && owed(&have, &want, rule));
    // Where one side does not show them they stay as they are.
    want.fixed = [0x0606_0606_0606_0606; 11];
    want.fixed_dram_bits = false;
    assert!(!harmed_anywhere(&have, &want, rule) && !owed(&have, &want, rule));
    // Nothing there could be cached.
    have.fixed[4] = 0x1818_1818_1818_1818;
    want = have;
    want.fixed[4] = 0;
    assert!(!harmed_anywhere(&have, &want, rule) && !owed(&have, &want, rule));
}

#[test]
fn junk_is_no_panic_and_no_promise() {
    let mut junk = plain(MemType::WriteBack, PatType::WriteBack);
    junk.cap = Some(MtrrCap::from_raw(u64::MAX));
    junk.def_type = MtrrDefType::from_raw(u64::MAX);
    junk.fixed = [u64::MAX; 11];
    junk.pat = Some(Pat::from_raw(u64::MAX));
    for (n, pair) in junk.variable.iter_mut().enumerate() {
        let noise = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n as u64 + 1);
        (pair.base, pair.mask) = (noise, noise.rotate_left(17) | 0x800);
    }
    let map = plain(MemType::WriteBack, PatType::WriteBack);
    for rule in RULES {
        assert!(owed(
            &junk,
            &plain(MemType::Uncachable, PatType::WriteBack),
            rule
        ));
        assert!(owed(&map, &junk, rule));
    }
}

fn any_range() -> impl Strategy<Value = VariableMtrr> {
    let kinds =
        prop_oneof![4 => Just(6u64), 2 => Just(0), 1 => prop::sample::select(vec![1, 4, 5])];
    let width = (1u64 << WIDTH) - 0x1000;
    let small = (0u32..11, any::<u64>()).prop_map(move |(order, at)| {
        let size = 0x1000u64 << order;
        (at % SMALL / size * size, width & !(size - 1))
    });
    let large = (0u32..7, any::<u64>()).prop_map(move |(order, at)| {
        let size = GIB << order;
        (at & width & !(size - 1), width & !(size - 1))
    });
    let holes = (any::<u64>(), any::<u64>()).prop_map(move |(base, mask)| {
        let mask = mask & width & !(GIB - 1);
        (base & width, mask)
    });
    let place = prop_oneof![3 => small, 4 => large, 1 => holes];
    (place, kinds, prop::bool::weighted(0.8)).prop_map(|((base, mask), kind, valid)| VariableMtrr {
        base: base & !0xfff | kind,
        mask: mask | u64::from(valid) << 11,
    })
}

prop_compose! {
    fn any_pat()(types in prop::collection::vec(prop::sample::select(PatType::ALL.to_vec()), 8),
                 usual in prop::bool::weighted(0.6)) -> Pat {
        if usual { Pat::POWER_ON } else { Pat::from_types(types.try_into().unwrap()) }
    }
}

prop_compose! {
    fn any_map()(
        ranges in prop::collection::vec(any_range(), 0..10),
        fixed in prop::collection::vec(prop::sample::select(vec![0u8, 1, 4, 5, 6, 6, 6]), 11),
        default in prop::sample::select(vec![0u64, 0, 6, 6, 1, 4, 5]),
        flags in prop::sample::select(vec![0u64, 0x800, 0x800, 0xc00, 0xc00, 0xc00]),
        tom2 in 0u64..70,
        force in any::<bool>(),
        pat in any_pat(),
    ) -> Snapshot {
        let mut map = plain(MemType::Uncachable, PatType::WriteBack);
        for (pair, range) in map.variable.iter_mut().zip(ranges) {
            *pair = range;
        }
        for (word, byte) in map.fixed.iter_mut().zip(fixed) {
            *word = u64::from(byte) * 0x0101_0101_0101_0101;
        }
        map.def_type = MtrrDefType::from_raw(flags | default);
        map.pat = Some(pat);
        map.syscfg = Some(SysCfg::from_raw(if force { 3 << 21 } else { 1 << 21 }));
        map.top_mem2 = tom2 * GIB;
        map
    }
}

/// A few registers changed: two maps drawn apart nearly always lose something.
fn near(map: Snapshot, touches: &[(u8, u8, VariableMtrr)]) -> Snapshot {
    let mut near = map;
    for (what, where_, range) in touches {
        let n = usize::from(*where_);
        match what {
            0..4 => near.variable[n % 10] = *range,
            4 => near.variable.swap(n % 10, n / 10 % 10),
            5 => near.fixed[n % 11] ^= 0x06 << (n % 8 * 8),
            6 => near.def_type = MtrrDefType::from_raw(near.def_type.raw() ^ 6),
            7 => near.def_type = MtrrDefType::from_raw(near.def_type.raw() ^ 0x400),
            8 => near.pat = Some(Pat::LINUX),
            _ => near.variable[n % 10].mask ^= 0x800,
        }
    }
    if MemType::from_field(near.def_type.raw() as u8).is_err() {
        near.def_type = MtrrDefType::from_raw(near.def_type.raw() & !0xff);
    }
    near
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_two_maps(before in any_map(), after in any_map()) {
        for rule in RULES {
            prop_assert!(exact_or_undefined(&before, &after, rule));
        }
    }

    #[test]
    fn near_maps(
        before in any_map(),
        touches in prop::collection::vec((0u8..10, any::<u8>(), any_range()), 1..3),
    ) {
        let after = near(before, &touches);
        for rule in RULES {
            prop_assert!(exact_or_undefined(&before, &after, rule));
        }
    }

    /// Fine holes make more pieces than are looked at: then a flush too many, never one too few.
    #[test]
    fn fine_holes_are_never_missed(
        before in any_map(),
        after in any_map(),
        mask in any::<u64>(),
        kind in prop::sample::select(vec![0u64, 6]),
    ) {
        let width = (1u64 << WIDTH) - 0x1000;
        let pair = VariableMtrr { base: kind, mask: mask & width | !(SMALL - 1) & width | 0x800 };
        let (mut before, mut after) = (before, after);
        before.variable[9] = pair;
        after.variable[9] = VariableMtrr { base: 6 - kind, ..pair };
        for rule in RULES {
            let needed = harmed_anywhere(&before, &after, rule);
            prop_assert!(owed(&before, &after, rule) || !needed);
        }
    }
}

/// Whether the answer is what every page says. A type that is undefined before and after counts as
/// lost, but only a map that is walked there shows it.
fn exact_or_undefined(before: &Snapshot, after: &Snapshot, rule: CombineRule) -> bool {
    let exact = harmed_anywhere(before, after, rule);
    owed(before, after, rule) == exact || (exact && only_undefined(before, after, rule))
}

/// Whether what is lost is lost only where both sides are undefined alike.
fn only_undefined(before: &Snapshot, after: &Snapshot, rule: CombineRule) -> bool {
    let pages = (0..SMALL).step_by(0x1000);
    let gib = (0..1 << WIDTH).step_by(GIB as usize);
    pages.chain([SMALL]).chain(gib.skip(1)).all(|addr| {
        let undefined =
            mtrr_at(before, before, addr).is_none() && mtrr_at(after, before, addr).is_none();
        undefined || !harmed_at(before, after, rule, addr)
    })
}

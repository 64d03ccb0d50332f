//! Real machines: the effective types, against the answers stated with their dumps.

use std::fs;
use std::path::Path;

use mtrr_pat::combine::{CombineRule, Effective, PageType};
use mtrr_pat::compare::SameMap;
use mtrr_pat::lookup::{MtrrMap, PageSize, Source, Uniformity};
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::{FIXED_RANGES, PhysBits};
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use serde_json::Value;

const UC: MemType = MemType::Uncachable;
const WC: MemType = MemType::WriteCombining;
const WT: MemType = MemType::WriteThrough;
const WP: MemType = MemType::WriteProtected;
const WB: MemType = MemType::WriteBack;

fn memtype(name: &str) -> MemType {
    let found = MemType::ALL.into_iter().find(|one| one.short() == name);
    found.unwrap_or_else(|| panic!("no type {name}"))
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().unwrap();
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn rows(facts: &Value, key: &str) -> Vec<Vec<Value>> {
    let rows = facts[key].as_array().cloned().unwrap_or_default();
    rows.into_iter()
        .map(|row| row.as_array().unwrap().clone())
        .collect()
}

fn bits(width: u64) -> PhysBits {
    PhysBits::new(u8::try_from(width).unwrap()).unwrap()
}

/// The registers that `facts.json` describes.
fn registers(facts: &Value) -> Snapshot {
    let mut snapshot = Snapshot::empty(bits(facts["phys_bits"].as_u64().unwrap()));
    let (fixed, variable) = (rows(facts, "fixed"), rows(facts, "variable"));
    let fix = if fixed.is_empty() { 0 } else { 0x100 };
    snapshot.cap = Some(MtrrCap::from_raw(fix | variable.len() as u64));
    let default = memtype(facts["default"].as_str().unwrap());
    let flag = |key: &str, bit: u64| {
        if facts[key].as_u64().unwrap_or(0) == 1 {
            bit
        } else {
            0
        }
    };
    let flags = flag("E", 1 << 11) | flag("FE", 1 << 10);
    snapshot.def_type = MtrrDefType::from_raw(flags | u64::from(default.raw()));
    for row in fixed {
        set_fixed(
            &mut snapshot,
            number(&row[0]),
            number(&row[1]),
            memtype(row[2].as_str().unwrap()),
        );
    }
    for (slot, row) in snapshot.variable.iter_mut().zip(variable) {
        let kind = memtype(row[2].as_str().unwrap());
        *slot = VariableMtrr {
            base: number(&row[0]) | u64::from(kind.raw()),
            mask: number(&row[1]) | 0x800,
        };
    }
    if facts["tom2"].is_string() {
        snapshot.syscfg = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
        snapshot.top_mem2 = number(&facts["tom2"]);
    }
    snapshot
}

fn set_fixed(snapshot: &mut Snapshot, first: u64, last: u64, kind: MemType) {
    for (range, word) in FIXED_RANGES.iter().zip(&mut snapshot.fixed) {
        for byte in 0..8 {
            let start = range.base + byte * range.step;
            if first <= start && start <= last {
                *word = *word & !(0xff << (8 * byte)) | u64::from(kind.raw()) << (8 * byte);
            }
        }
    }
}

fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("facts.json").exists())
        .map(|path| {
            let facts = fs::read_to_string(path.join("facts.json")).unwrap();
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                serde_json::from_str(&facts).unwrap(),
            )
        })
        .collect();
    cases.sort_by(|one, two| one.0.cmp(&two.0));
    cases
}

fn case(number: &str) -> Snapshot {
    let (_, facts) = cases()
        .into_iter()
        .find(|(name, _)| name.starts_with(number))
        .unwrap();
    registers(&facts)
}

fn at(snapshot: &Snapshot, addr: u64) -> MtrrType {
    MtrrMap::new(snapshot).at(addr).memtype
}

/// A machine with E set and nothing else, to put the registers of a report in.
fn machine(width: u64, default: MemType, pairs: &[(u64, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::empty(bits(width));
    snapshot.cap = Some(MtrrCap::from_raw(pairs.len() as u64));
    snapshot.def_type = MtrrDefType::from_raw(1 << 11 | u64::from(default.raw()));
    for (slot, &(base, mask)) in snapshot.variable.iter_mut().zip(pairs) {
        *slot = VariableMtrr { base, mask };
    }
    snapshot
}

/// Every `map` and every probe of every case.
#[test]
fn maps_and_probes() {
    let (mut maps, mut probes) = (0, 0);
    for (name, facts) in cases() {
        let stated = rows(&facts, "map");
        if stated.is_empty() {
            continue;
        }
        let snapshot = registers(&facts);
        let map = MtrrMap::new(&snapshot);
        let mut want: Vec<(u64, u64, MtrrType)> = Vec::new();
        for row in stated {
            let (first, last, kind) = (number(&row[0]), number(&row[1]), row[2].as_str().unwrap());
            let kind = MtrrType::Defined(memtype(kind));
            match want.last_mut() {
                Some(run) if run.2 == kind && run.1 == first => run.1 = last + 1,
                _ => want.push((first, last + 1, kind)),
            }
        }
        let got: Vec<_> = map
            .runs()
            .map(|run| (run.start, run.end, run.memtype))
            .collect();
        assert_eq!(got, want, "{name}");
        maps += 1;
        for row in rows(&facts, "probes") {
            let kind = MtrrType::Defined(memtype(row[1].as_str().unwrap()));
            assert_eq!(map.at(number(&row[0])).memtype, kind, "{name} {row:?}");
            probes += 1;
        }
    }
    // So that an empty folder does not pass.
    assert!(maps >= 21 && probes >= 70, "{maps} maps, {probes} probes");
}

/// A 36-bit mask, read with 40 bits by the kernel of the report: 983552 MB instead of 512.
#[test]
fn c001_size_depends_on_the_width() {
    let pair = VariableMtrr {
        base: 6,
        mask: 0xf_e000_0800,
    };
    assert_eq!(pair.block(bits(36)), Some((0, 512 << 20)));
    // At 40 bits it has a hole at the top: no block, but every 64 GiB an alias.
    assert_eq!(pair.block(bits(40)), None);
    let mut snapshot = machine(36, UC, &[(pair.base, pair.mask)]);
    assert_eq!(
        MtrrMap::new(&snapshot).runs().next().unwrap().bytes(),
        512 << 20
    );
    assert_eq!(at(&snapshot, 0xd000_0000), UC.into());
    snapshot.phys_bits = bits(40);
    assert_eq!(at(&snapshot, 0xf0_0000_0000), WB.into());
}

#[test]
fn c003_mask_zero_is_everything() {
    let snapshot = machine(
        36,
        UC,
        &[
            (6, 0x800),
            (0xbff0_0000, 0xf_fff0_0800),
            (0xc000_0000, 0xf_c000_0800),
        ],
    );
    assert_eq!(snapshot.variable[0].block(bits(36)), Some((0, 64 << 30)));
    assert_eq!(at(&snapshot, 0xbff0_0000), UC.into());
    assert_eq!(at(&snapshot, 0xc000_0000), UC.into());
    assert_eq!(at(&snapshot, 0x1_bbff_ffff), WB.into());
    assert_eq!(
        MtrrMap::new(&snapshot).largest_page(0xbfe0_0000),
        PageSize::Size4K
    );
}

/// Memory encryption takes address bits: the masks are right for what is left.
#[test]
fn c005_width_under_memory_encryption() {
    let pair = VariableMtrr {
        base: 6,
        mask: 0x3fff_8000_0800,
    };
    assert_eq!(pair.block(bits(46)), Some((0, 2 << 30)));
    assert_eq!(pair.block(bits(52)), None);
}

/// Bases under the mask are ignored, so four of the five pairs reach much farther than meant.
#[test]
fn c007_bases_under_the_mask() {
    let snapshot = machine(
        46,
        UC,
        &[
            (0x6, 0x3fff_f800_0800),
            (0x800_0006, 0x3fff_0000_0800),
            (0x1_0000_0006, 0x3ff0_0000_0800),
            (0x10_0000_0006, 0x3800_0000_0800),
            (0x800_0000_0006, 0x800),
        ],
    );
    let sizes = [128 << 20, 4 << 30, 64 << 30, 8 << 40, 1 << 46];
    for (pair, size) in snapshot.variable_ranges().iter().zip(sizes) {
        assert_eq!(pair.block(bits(46)), Some((0, size)));
    }
    assert_eq!(at(&snapshot, 0xfec0_0000), WB.into());
    assert_eq!(MtrrMap::new(&snapshot).runs().count(), 1);
}

/// WT inside UC is UC: not "mixed", and not a write-through frame buffer.
#[test]
fn c009_c010_ranges_without_effect_do_not_mix() {
    let map = MtrrMap::new(&case("009"));
    assert_eq!(
        map.over(0xe000_0000..0xf200_0000),
        Uniformity::Uniform(UC.into())
    );
    assert_eq!(map.largest_page(0xe000_0000), PageSize::Size1G);
    let map = MtrrMap::new(&case("010"));
    assert_eq!(
        map.over(0x383f_ffa0_0000..0x383f_ffc0_0000),
        Uniformity::Uniform(UC.into())
    );
    assert!(map.largest_page(0x383f_ffa0_0000) >= PageSize::Size2M);
    // Both registers match there, and UC wins.
    assert_eq!(
        map.at(0x383f_ffa0_0000).source,
        Source::Variable { pairs: 0b0110 }
    );
    // The other setting of that firmware.
    let map = MtrrMap::new(&machine(
        46,
        WB,
        &[
            (0x8000_0000, 0x3fff_8000_0800),
            (0xf980_0004, 0x3fff_ff80_0800),
        ],
    ));
    assert_eq!(
        map.over(0xf980_0000..0xfa00_0000),
        Uniformity::Uniform(UC.into())
    );
}

/// In registers, in both orders, what `overlap` states for sets.
#[test]
fn c012_overlaps_in_every_order() {
    let mix = MtrrType::Undefined(Undefined::Mix);
    for (one, two, want) in [
        (WB, WT, WT.into()),
        (WT, WT, WT.into()),
        (WB, WB, WB.into()),
        (WB, UC, UC.into()),
        (WT, UC, UC.into()),
        (WB, WC, mix),
        (WP, WB, mix),
    ] {
        for [one, two] in [[one, two], [two, one]] {
            let pair = |kind: MemType| (0x4000_0000 | u64::from(kind.raw()), 0xf_c000_0800);
            let snapshot = machine(36, WP, &[pair(one), pair(two)]);
            assert_eq!(at(&snapshot, 0x4000_0000), want, "{one} {two}");
        }
    }
    assert_eq!(mix.forced(), UC);
}

#[test]
fn c015_top_mem2_forces_write_back() {
    let mut snapshot = case("015");
    assert_eq!(
        MtrrMap::new(&snapshot).at(0x1_2fff_ffff).source,
        Source::TopMem2
    );
    snapshot.syscfg = Some(SysCfg::MTRR_TOM2_EN);
    assert_eq!(at(&snapshot, 0x1_0000_0000), UC.into());
    assert_eq!(at(&snapshot, 0x1_2fff_ffff), UC.into());
}

#[test]
fn c021_types_of_an_epyc() {
    let mut snapshot = machine(
        48,
        UC,
        &[
            (0xff00_0005, 0xffff_ff00_0800),
            (6, 0xffff_8000_0800),
            (0, 0),
        ],
    );
    snapshot.syscfg = Some(SysCfg::from_raw(0x3fc_0000));
    snapshot.top_mem2 = 0x40_8000_0000;
    assert_eq!(at(&snapshot, 0xff00_0000), WP.into());
    assert_eq!(at(&snapshot, 0xffff_ffff), WP.into());
    assert_eq!(at(&snapshot, 0x7fff_ffff), WB.into());
    assert_eq!(at(&snapshot, 0x40_0000_0000), WB.into());
    assert_eq!(at(&snapshot, 0x40_8000_0000), UC.into());
    assert_eq!(snapshot.same_map(&snapshot), SameMap::Same);
}

/// RdMem and WrMem, visible, are not part of the type: 0x1E is WB.
#[test]
fn c022_rdmem_and_wrmem_do_not_spoil_the_type() {
    let mut snapshot = machine(40, UC, &[]);
    snapshot.cap = Some(MtrrCap::from_raw(0x100));
    snapshot.def_type = MtrrDefType::from_raw(0xc00);
    snapshot.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
    snapshot.fixed[3] = 0x1515_0d0d_1818_1919;
    snapshot.syscfg = Some(SysCfg::MTRR_FIX_DRAM_MOD_EN);
    assert_eq!(at(&snapshot, 0), WB.into());
    let kinds = [0xc_0000, 0xc_2000, 0xc_4000, 0xc_6000].map(|addr| at(&snapshot, addr));
    assert_eq!(kinds, [WC, UC, WP, WP].map(MtrrType::Defined));
    snapshot.syscfg = None;
    assert_eq!(at(&snapshot, 0), MtrrType::Undefined(Undefined::Reserved));
}

#[test]
fn c028_default_write_protect() {
    let mut boot = machine(48, UC, &[]);
    boot.cap = Some(MtrrCap::from_raw(0x508));
    boot.def_type = MtrrDefType::from_raw(0x805);
    for addr in [0, 0xa_0000, 0x1_0000_0000] {
        assert_eq!(at(&boot, addr), WP.into());
    }
    let mut ap = boot;
    ap.def_type = MtrrDefType::from_raw(0);
    assert!(
        matches!(boot.same_map(&ap), SameMap::Differs(found) if (found.start, found.end) == (0, 1 << 48))
    );
    for rule in [CombineRule::Intel, CombineRule::Amd] {
        assert_eq!(
            Effective::combine(WP.into(), PatType::WriteBack, rule).page,
            PageType::WriteProtected
        );
    }
}

#[test]
fn c030_would_be_right_with_e_set() {
    let mut snapshot = case("030");
    assert_eq!(
        MtrrMap::new(&snapshot).at(0x100_0000).source,
        Source::Disabled
    );
    snapshot.def_type = MtrrDefType::from_raw(snapshot.def_type.raw() | 1 << 11);
    assert_eq!(at(&snapshot, 0x100_0000), WB.into());
    assert_eq!(at(&snapshot, 0x3f7f_ffff), WB.into());
    assert_eq!(at(&snapshot, 0x3f80_0000), UC.into());
    assert_eq!(at(&snapshot, 0x3fff_ffff), UC.into());
}

#[test]
fn c034_no_variable_ranges() {
    let mut snapshot = machine(39, UC, &[]);
    snapshot.cap = Some(MtrrCap::from_raw(0x100));
    snapshot.def_type = MtrrDefType::from_raw(0xc00);
    let bar = at(&snapshot, 0x8000_0000);
    assert_eq!(bar, UC.into());
    let page = |pat| Effective::combine(bar, pat, CombineRule::Intel).page;
    assert_eq!(page(PatType::WriteBack), PageType::Uncachable);
    assert_eq!(page(PatType::WriteCombining), PageType::WriteCombining);
}

/// A WC range added under a UC one changes nothing; over WB it would be undefined.
#[test]
fn c035_c057_adding_write_combining_is_useless() {
    for (number, hole, plain) in [
        ("035", 0xe000_0000, None),
        ("057", 0xfb00_0000, Some(0x1000_0000)),
    ] {
        let mut snapshot = case(number);
        let count = snapshot.variable_count();
        assert_eq!(at(&snapshot, hole), UC.into());
        snapshot.cap = Some(MtrrCap::from_raw(snapshot.cap.unwrap().raw() + 1));
        let add = |base| VariableMtrr::from_block(base, 16 << 20, WC, snapshot.phys_bits).unwrap();
        snapshot.variable[count] = add(hole);
        assert_eq!(at(&snapshot, hole), UC.into());
        if let Some(plain) = plain {
            snapshot.variable[count] = add(plain);
            assert_eq!(at(&snapshot, plain), MtrrType::Undefined(Undefined::Mix));
        }
    }
}

#[test]
fn c038_pat_of_zeros_caches_nothing() {
    for index in 0..8 {
        let pat = Pat::from_raw(0).slot(index).unwrap();
        assert_eq!(
            Effective::combine(WB.into(), pat, CombineRule::Intel).page,
            PageType::Uncachable
        );
        assert_eq!(
            Effective::combine(WB.into(), pat, CombineRule::Amd).page,
            PageType::CacheDisabled
        );
    }
}

/// UC over the first 128 KiB: the fixed ranges override it, and without them it wins over WB.
#[test]
fn c045_fixed_ranges_override() {
    let mut snapshot = case("045");
    assert_eq!(at(&snapshot, 0x1_0000), UC.into());
    snapshot.cap = Some(MtrrCap::from_raw(snapshot.cap.unwrap().raw() | 0x100));
    snapshot.def_type = MtrrDefType::from_raw(0xc00);
    snapshot.fixed = [0x0606_0606_0606_0606; 11];
    assert_eq!(at(&snapshot, 0x1_0000), WB.into());
    snapshot.def_type = MtrrDefType::from_raw(0x800);
    assert_eq!(at(&snapshot, 0x1_0000), UC.into());
}

/// The lowest address is in the lowest byte: WP for 16 KiB leaves the other half alone.
#[test]
fn c071_half_a_fixed_register() {
    let mut snapshot = machine(36, UC, &[]);
    snapshot.cap = Some(MtrrCap::from_raw(0x100));
    snapshot.def_type = MtrrDefType::from_raw(0xc00);
    snapshot.fixed = [0x0606_0606_0606_0606; 11];
    set_fixed(&mut snapshot, 0xf_0000, 0xf_3fff, WP);
    assert_eq!(snapshot.fixed[9], 0x0606_0606_0505_0505);
    assert_eq!(at(&snapshot, 0xf_3fff), WP.into());
    assert_eq!(at(&snapshot, 0xf_4000), WB.into());
    assert_eq!(MtrrMap::new(&snapshot).largest_page(0), PageSize::Size4K);
}

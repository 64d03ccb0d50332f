//! Real machines and bug reports: what the diagnosis must say of each.
//!
//! Registers come from `tests/data/cases` where a dump exists, and are written out here where the
//! report has only words.

use std::fs;
use std::ops::Range;
use std::path::Path;

use mtrr_pat::compare::SameMap;
use mtrr_pat::diagnose::{Context, Extent, Finding, Kind, Registers, Removal, Severity, diagnose};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::{FIXED_RANGES, PhysBits};
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use serde_json::Value;

const UC: MtrrType = MtrrType::Defined(MemType::Uncachable);
const FORCE_WB: u64 = 0x60_0000;

fn bits(width: u8) -> PhysBits {
    PhysBits::new(width).unwrap()
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().unwrap();
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn memtype(value: &Value) -> MemType {
    let name = value.as_str().unwrap();
    let found = MemType::ALL.into_iter().find(|one| one.short() == name);
    found.unwrap_or_else(|| panic!("no type {name}"))
}

fn rows(facts: &Value, key: &str) -> Vec<Value> {
    facts[key].as_array().cloned().unwrap_or_default()
}

/// Fixed ranges as firmware usually leaves them: WB below 640 KiB, UC, then WP.
fn usual_fixed() -> [u64; 11] {
    let mut fixed = [0x0606_0606_0606_0606; 11];
    fixed[2] = 0;
    fixed[3..].fill(0x0505_0505_0505_0505);
    fixed
}

/// The machine of a report, with as many pairs as its log lists. A dump without fixed ranges is
/// taken to have the usual ones, in force. The PAT is one that has no findings.
fn machine(case: &str, pairs: usize) -> Snapshot {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let text = fs::read_to_string(folder.join(case).join("facts.json")).unwrap();
    let facts: Value = serde_json::from_str(&text).unwrap();
    let width = facts["phys_bits"].as_u64().unwrap();
    let mut cpu = Snapshot::empty(bits(u8::try_from(width).unwrap()));
    cpu.cap = Some(MtrrCap::from_raw(0x500 | pairs as u64));
    let flags = (facts["E"].as_u64().unwrap() << 11) | (facts["FE"].as_u64().unwrap() << 10);
    let default = memtype(&facts["default"]);
    cpu.def_type = MtrrDefType::from_raw(flags | u64::from(default.raw()));
    for (slot, row) in cpu.variable.iter_mut().zip(rows(&facts, "variable")) {
        let memtype = memtype(&row[2]);
        *slot = VariableMtrr {
            base: number(&row[0]) | u64::from(memtype.raw()),
            mask: number(&row[1]) | VariableMtrr::V,
        };
    }
    let fixed = rows(&facts, "fixed");
    if fixed.is_empty() {
        cpu.fixed = usual_fixed();
    }
    for row in fixed {
        let (first, last) = (number(&row[0]), number(&row[1]));
        for (word, range) in cpu.fixed.iter_mut().zip(FIXED_RANGES) {
            for byte in 0..8 {
                let start = range.base + byte * range.step;
                if (first..=last).contains(&start) {
                    *word |= u64::from(memtype(&row[2]).raw()) << (8 * byte);
                }
            }
        }
    }
    if facts["tom2"].is_string() {
        cpu.top_mem2 = number(&facts["tom2"]);
        cpu.syscfg = Some(SysCfg::from_raw(FORCE_WB));
    }
    cpu.pat = Some(Pat::LINUX);
    cpu
}

/// A machine of a report in words: variable ranges as raw pairs.
fn written(width: u8, def_type: u64, pairs: &[(u64, u64)]) -> Snapshot {
    let mut cpu = Snapshot::empty(bits(width));
    cpu.cap = Some(MtrrCap::from_raw(0x508));
    cpu.def_type = MtrrDefType::from_raw(def_type);
    cpu.fixed = usual_fixed();
    cpu.pat = Some(Pat::LINUX);
    for (slot, (base, mask)) in cpu.variable.iter_mut().zip(pairs) {
        *slot = VariableMtrr {
            base: *base,
            mask: *mask,
        };
    }
    cpu
}

fn found(cpus: &[Snapshot], context: &Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    diagnose(cpus, context, &mut |finding| found.push(finding));
    found
}

fn alone(cpu: &Snapshot) -> Vec<Finding> {
    found(&[*cpu], &Context::bare_metal())
}

fn with_ram(cpu: &Snapshot, ram: &[Range<u64>]) -> Vec<Finding> {
    found(&[*cpu], &Context::bare_metal().with_ram(ram))
}

fn kinds(found: &[Finding]) -> Vec<Kind> {
    found.iter().map(|finding| finding.kind).collect()
}

fn redundant(pair: u8) -> Kind {
    Kind::Redundant {
        pair,
        removal: Removal::Together,
    }
}

fn no_effect(pair: u8, winner: Option<MtrrType>) -> Kind {
    Kind::NoEffect {
        pair,
        winner,
        removal: Removal::Together,
    }
}

fn uncached_ram() -> Kind {
    Kind::RamNotWriteBack { memtype: UC }
}

/// Everything that is found on each machine with a dump, and nothing else.
#[test]
fn findings_of_every_dump() {
    let all = |pairs| Kind::NoFreePair { pairs };
    let expected: [(&str, usize, &[Kind]); 18] = [
        (
            "009-xeon-wt-fb-inside-uc",
            10,
            &[no_effect(4, Some(UC)), no_effect(5, Some(UC))],
        ),
        (
            "010-xeond-10gbe-hugepage",
            10,
            &[no_effect(2, Some(UC)), redundant(3)],
        ),
        ("015-tom2-4864m-forcewb", 8, &[]),
        ("017-amd-24gb-a0000-wt", 8, &[]),
        // Forcing WB below TOP_MEM2 is relied on here: the range from 4 GiB says it again.
        ("019-amd40-nested-wp", 8, &[redundant(3), redundant(5)]),
        ("030-d-p4-mtrrs-globally-off", 8, &[Kind::OffProgrammed]),
        ("032-hyperv-guest-mtrr-off", 8, &[Kind::OffBlank]),
        ("035-qemu-default-wb", 8, &[]),
        ("042-ds620slim-39bit", 10, &[]),
        ("043-low-hole-16gb-eight-used", 8, &[all(8)]),
        (
            "045-aspire-one-uc-under-1m",
            8,
            &[redundant(1), no_effect(7, None), all(8)],
        ),
        ("047-n100-all-ten-used", 10, &[all(10)]),
        ("049-openssd-host-12gb", 10, &[]),
        ("050-e6510-uc-trim-above-top", 8, &[]),
        ("052-hp-g6-eight-used", 8, &[all(8)]),
        ("053-m2a-vm-k8-40bit", 8, &[]),
        ("055-mingo-8gb-uc-first", 8, &[]),
        ("063-xeon-320gb-cleanup-fails", 10, &[]),
    ];
    for (case, pairs, kinds_wanted) in expected {
        assert_eq!(kinds(&alone(&machine(case, pairs))), kinds_wanted, "{case}");
    }
    // These three have pairs within pairs, and no more than these.
    for (case, pairs) in [
        ("059-uv-12tb-46bit", vec![5, 6, 7]),
        ("061-brickland-46bit-redundant", vec![3]),
        ("057-i2o-wc-over-wb-and-uc", vec![]),
    ] {
        let wanted: Vec<_> = pairs.into_iter().map(redundant).collect();
        assert_eq!(kinds(&alone(&machine(case, 10))), wanted, "{case}");
    }
}

/// 001: a kernel that took 40 address bits for 36 printed 983552 MB for a range of 512 MB.
#[test]
fn mask_read_with_the_wrong_width() {
    let mut cpu = written(36, 0xc00, &[(0x6, 0xf_e000_0800)]);
    assert_eq!(alone(&cpu), []);
    let ranges = cpu.variable_ranges()[0].block(cpu.phys_bits);
    assert_eq!(ranges, Some((0, 512 << 20)));
    cpu.phys_bits = bits(40);
    let found = alone(&cpu);
    let wrong = Kind::MaskWidth {
        pair: 0,
        mask_bits: 36,
        width: bits(40),
        all: true,
    };
    assert_eq!(kinds(&found), [wrong]);
    assert_eq!(
        found[0].to_string(),
        "the mask of variable range 0 is made for 36 bits of address, but 40 bits are decoded: \
         8 GiB within 0x0-0xf01fffffff"
    );
    // Write-combining for the graphics card overlaps nothing.
    cpu.phys_bits = bits(36);
    cpu.variable[1] = VariableMtrr {
        base: 0xd000_0001,
        mask: 0xf_f800_0800,
    };
    assert_eq!(alone(&cpu), []);
}

/// 003: mask 0 is the whole 64 GiB space, legal, and RAM is WB where it should be.
#[test]
fn mask_zero_is_the_whole_space() {
    let pairs = [
        (0x6, 0x800),
        (0xbff0_0000, 0xf_fff0_0800),
        (0xc000_0000, 0xf_c000_0800),
    ];
    let cpu = written(36, 0xc00, &pairs);
    let ram = [0x10_0000..0xbff0_0000, 0x1_0000_0000..0x1_bc00_0000];
    assert_eq!(with_ram(&cpu, &ram), []);
}

/// 005: memory encryption takes address bits; masks made for fewer are right, the reader is not.
#[test]
fn memory_encryption_takes_address_bits() {
    let mut cpu = written(46, 0xc00, &[(0x6, 0x3fff_8000_0800)]);
    assert_eq!(alone(&cpu), []);
    cpu.phys_bits = bits(52);
    let found = found(&[cpu], &Context::bare_metal().with_width(bits(46)));
    let disagrees = Kind::WidthDisagrees {
        snapshot: bits(52),
        expected: bits(46),
    };
    let wrong = Kind::MaskWidth {
        pair: 0,
        mask_bits: 46,
        width: bits(52),
        all: true,
    };
    assert_eq!(kinds(&found), [disagrees, wrong]);
    assert!(found[1].fix().to_string().contains("memory encryption"));
}

/// 007: bases with bits under the mask: reported as what they match, not corrected.
#[test]
fn bases_that_are_not_what_they_seem() {
    let pairs = [
        (0x6, 0x3fff_f800_0800),
        (0x800_0006, 0x3fff_0000_0800),
        (0x1_0000_0006, 0x3ff0_0000_0800),
        (0x10_0000_0006, 0x3800_0000_0800),
        (0x800_0000_0006, 0x800),
    ];
    let cpu = written(46, 0x800, &pairs);
    let found = alone(&cpu);
    let ends = [1u64 << 32, 1 << 36, 1 << 43, 1 << 46];
    for ((pair, (base, _)), end) in (1u8..).zip(&pairs[1..]).zip(ends) {
        let kind = Kind::BaseUnderMask {
            pair,
            base: base & !0xfff,
        };
        let finding = found.iter().find(|one| one.kind == kind).unwrap();
        let extent = Extent {
            start: 0,
            end,
            bytes: end,
        };
        assert_eq!(finding.extent, Some(extent));
    }
    // Everything is WB by the last pair, so the others may go.
    for pair in 0..4 {
        assert!(kinds(&found).contains(&redundant(pair)));
    }
    assert_eq!(found.len(), 8, "{found:#?}");
    let ram = 0..1u64 << 46;
    let found = with_ram(&cpu, std::slice::from_ref(&ram));
    assert!(!kinds(&found).contains(&uncached_ram()));
}

/// 012: which combinations of overlapping types are undefined.
#[test]
fn overlapping_types() {
    use MemType::{Uncachable, WriteBack, WriteCombining, WriteProtected, WriteThrough};
    let undefined = |one: MemType, other: MemType| {
        let pair = |memtype: MemType| (u64::from(memtype.raw()), 0xf_8000_0800);
        let found = alone(&written(36, 0xc00, &[pair(one), pair(other)]));
        kinds(&found).contains(&Kind::UndefinedOverlap { pairs: [0, 1] })
    };
    for (one, other, wanted) in [
        (WriteBack, WriteBack, false),
        (WriteBack, WriteThrough, false),
        (WriteThrough, WriteThrough, false),
        (WriteBack, Uncachable, false),
        (WriteThrough, Uncachable, false),
        (WriteBack, WriteCombining, true),
        (WriteProtected, WriteBack, true),
    ] {
        assert_eq!(undefined(one, other), wanted, "{one}, {other}");
        assert_eq!(undefined(other, one), wanted, "{other}, {one}");
    }
}

/// 015: no variable range above 4 GiB, and nothing is lost, for TOP_MEM2 makes it WB.
#[test]
fn top_mem2_covers_ram() {
    let mut cpu = machine("015-tom2-4864m-forcewb", 8);
    let ram = [
        0..0xa_0000,
        0x10_0000..0xd000_0000,
        0x1_0000_0000..0x1_3000_0000,
    ];
    assert_eq!(with_ram(&cpu, &ram), []);
    let lost = Extent {
        start: 0x1_0000_0000,
        end: 0x1_3000_0000,
        bytes: 768 << 20,
    };
    // With forcing off it would be lost, and with TOP_MEM2 off it would not even be memory.
    cpu.syscfg = Some(SysCfg::from_raw(0x20_0000));
    let found = with_ram(&cpu, &ram);
    assert_eq!(kinds(&found), [uncached_ram(), Kind::Tom2NotWriteBack]);
    assert_eq!([found[0].extent, found[1].extent], [Some(lost); 2]);
    cpu.syscfg = Some(SysCfg::from_raw(0x40_0000));
    let found = with_ram(&cpu, &ram);
    assert_eq!(kinds(&found), [uncached_ram(), Kind::Tom2Off]);
    assert_eq!(found[1].severity, Severity::Error);
    assert_eq!(
        found[0].to_string(),
        "RAM is uncachable: 0x100000000-0x12fffffff (768 MiB)"
    );
}

/// 017, 053, 055: RAM as their maps have it is all WB.
#[test]
fn ram_of_sound_machines() {
    for (case, ram) in [
        (
            "017-amd-24gb-a0000-wt",
            [0x10_0000..0xbf80_0000, 0x1_0000_0000..0x6_3f00_0000],
        ),
        ("053-m2a-vm-k8-40bit", [0..0xa_0000, 0x10_0000..0x77ee_0000]),
        (
            "055-mingo-8gb-uc-first",
            [0x10_0000..0xf000_0000, 0x1_0000_0000..0x1_f000_0000],
        ),
        (
            "050-e6510-uc-trim-above-top",
            [0x10_0000..0xd000_0000, 0x1_0000_0000..0x2_3000_0000],
        ),
        (
            "059-uv-12tb-46bit",
            [0x10_0000..0x8000_0000, 0x1_0000_0000..0xc20_0000_0000],
        ),
    ] {
        let found = with_ram(&machine(case, 10), &ram);
        let wrong = |one: &Finding| matches!(one.kind, Kind::RamNotWriteBack { .. });
        assert!(!found.iter().any(wrong), "{case}");
    }
}

/// 019: the nested WP range is redundant; the one from 4 GiB only if TOP_MEM2 may be relied on.
#[test]
fn redundant_with_and_without_top_mem2() {
    let mut cpu = machine("019-amd40-nested-wp", 8);
    assert_eq!(kinds(&alone(&cpu)), [redundant(3), redundant(5)]);
    cpu.syscfg = Some(SysCfg::from_raw(0x20_0000));
    assert_eq!(kinds(&alone(&cpu)), [redundant(5)]);
}

/// 021: eight CPUs with the same registers; 024: they differ where V is 0 only.
#[test]
fn cpus_that_agree() {
    let pairs = [(0xff00_0005, 0xffff_ff00_0800), (0x6, 0xffff_8000_0800)];
    let mut cpu = written(48, 0xc00, &pairs);
    cpu.syscfg = Some(SysCfg::from_raw(0x3fc_0000));
    cpu.top_mem2 = 0x40_8000_0000;
    cpu.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
    let mut cpus = [cpu; 8];
    let found_all = found(&cpus, &Context::bare_metal());
    assert_eq!(kinds(&found_all), [Kind::FixedDramVisible]);

    for cpu in &mut cpus[5..] {
        cpu.variable[6].base = 0xfeed_0000;
    }
    let found_all = found(&cpus, &Context::bare_metal());
    let differs = Kind::CpuDiffers {
        cpu: 5,
        count: 3,
        registers: Registers::UNUSED,
        map: SameMap::Same,
        off: false,
    };
    assert_eq!(kinds(&found_all), [Kind::FixedDramVisible, differs]);
    assert_eq!(found_all[1].severity, Severity::Info);
    assert_eq!(
        found_all[1].to_string(),
        "CPU 5 and 2 like it differ from CPU 0 in: unused variable ranges; the memory map is the \
         same"
    );
    assert_eq!(found_all[1].fix().to_string(), "nothing");
}

/// 022: a copy of the fixed ranges taken with RdMem and WrMem hidden must be known for one.
#[test]
fn fixed_ranges_saved_with_hidden_bits() {
    let mut cpu = written(40, 0xc00, &[(0x6, 0xff_8000_0800)]);
    cpu.syscfg = Some(SysCfg::from_raw(1 << 18));
    let hidden = alone(&cpu);
    assert_eq!(kinds(&hidden), [Kind::FixedDramHidden]);
    assert!(
        hidden[0]
            .fix()
            .to_string()
            .contains("do not write this copy back")
    );
    cpu.syscfg = Some(SysCfg::from_raw(3 << 18));
    cpu.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
    let visible = alone(&cpu);
    assert_eq!(kinds(&visible), [Kind::FixedDramVisible]);
    assert!(visible[0].fix().to_string().contains("at suspend time"));
}

/// 026: firmware never set up the APs.
#[test]
fn aps_never_programmed() {
    let boot = written(36, 0xc06, &[(0x8000_0000, 0xf_8000_0800)]);
    let mut ap = Snapshot::empty(bits(36));
    (ap.cap, ap.pat) = (boot.cap, boot.pat);
    let found = found(&[boot, ap, ap, ap], &Context::bare_metal());
    let registers = Registers::DEF_TYPE | Registers::FIXED | Registers::VARIABLE;
    let Kind::CpuDiffers {
        cpu: 1,
        count: 3,
        registers: differing,
        off: true,
        ..
    } = found[0].kind
    else {
        panic!("{found:?}");
    };
    assert_eq!((found.len(), differing), (1, registers));
    assert_eq!(found[0].severity, Severity::Error);
    assert_eq!(
        found[0].to_string(),
        "CPU 1 and 2 like it differ from CPU 0 in: default type, fixed ranges, variable ranges; \
         the MTRRs are off there, all memory is uncachable"
    );
}

/// 028: default type WP and nothing else, on the boot CPU only.
#[test]
fn default_type_set_on_the_boot_cpu_only() {
    let mut boot = written(48, 0x805, &[]);
    boot.fixed = [0; 11];
    let mut ap = boot;
    ap.def_type = MtrrDefType::from_raw(0);
    let found = found(&[boot, ap], &Context::hypervisor());
    let default = MtrrType::Defined(MemType::WriteProtected);
    assert_eq!(found[0].kind, Kind::NothingWriteBack { default });
    assert_eq!(found[0].severity, Severity::Warning);
    let Kind::CpuDiffers { registers, .. } = found[1].kind else {
        panic!("{found:?}");
    };
    assert_eq!(registers, Registers::DEF_TYPE);
    let map = MtrrMap::new(&boot);
    for addr in [0, 0xa_0000, 0x10_0000] {
        assert_eq!(map.at(addr).memtype, default);
    }
}

/// 030: sensible registers, globally off: the laptop that was slow for years.
#[test]
fn programmed_but_off() {
    let cpu = machine("030-d-p4-mtrrs-globally-off", 8);
    let ram = 0x10_0000..0x3f77_0000;
    let found = with_ram(&cpu, std::slice::from_ref(&ram));
    assert_eq!(kinds(&found), [Kind::OffProgrammed, uncached_ram()]);
    assert_eq!(found[0].severity, Severity::Error);
    assert_eq!(
        found[0].to_string(),
        "the MTRRs are off (E=0) although ranges are programmed: all memory is uncachable"
    );
    assert!(found[0].fix().to_string().starts_with("set E again"));
    assert_eq!(found[1].bytes(), ram.end - ram.start);
    // With E set, nothing is wrong.
    let mut on = cpu;
    on.def_type = MtrrDefType::from_raw(cpu.def_type.raw() | MtrrDefType::E);
    assert_eq!(with_ram(&on, std::slice::from_ref(&ram)), []);
}

/// 032: off and blank is information on a hypervisor, and an error on bare metal.
#[test]
fn off_and_blank_depends_on_the_machine() {
    let cpu = machine("032-hyperv-guest-mtrr-off", 8);
    let ram = 0..0x4_0800_0000u64;
    let guest = found(
        &[cpu],
        &Context::hypervisor().with_ram(std::slice::from_ref(&ram)),
    );
    assert_eq!(kinds(&guest), [Kind::OffBlank]);
    assert_eq!(guest[0].severity, Severity::Info);
    assert!(
        guest[0]
            .fix()
            .to_string()
            .starts_with("nothing: the hypervisor decides")
    );
    let metal = with_ram(&cpu, std::slice::from_ref(&ram));
    assert_eq!(kinds(&metal), [Kind::OffBlank, uncached_ram()]);
    assert!(metal.iter().all(|one| one.severity == Severity::Error));
}

/// 034: a hypervisor without variable ranges, default UC: no page can be cached.
#[test]
fn no_variable_ranges() {
    let mut cpu = written(39, 0xc00, &[]);
    cpu.cap = Some(MtrrCap::from_raw(0x500));
    let found = found(&[cpu], &Context::hypervisor());
    let nothing = Kind::NothingWriteBack { default: UC };
    assert_eq!(kinds(&found), [nothing, Kind::NoFreePair { pairs: 0 }]);
    assert_eq!(found[1].to_string(), "there are no variable ranges");
}

/// 035 and 057: a WC range added under UC has no effect; nor is the overlap undefined there.
#[test]
fn write_combining_added_under_uc() {
    let mut cpu = machine("035-qemu-default-wb", 8);
    cpu.pat = None;
    let wc = |base, size, width| {
        VariableMtrr::from_block(base, size, MemType::WriteCombining, bits(width)).unwrap()
    };
    cpu.variable[1] = wc(0xe000_0000, 1 << 24, 40);
    assert_eq!(kinds(&alone(&cpu)), [no_effect(1, Some(UC)), Kind::NoPat]);
    let mut cpu = machine("057-i2o-wc-over-wb-and-uc", 8);
    cpu.variable[5] = wc(0xfb00_0000, 1 << 24, 40);
    let found = alone(&cpu);
    assert_eq!(kinds(&found), [no_effect(5, Some(UC))]);
    assert_eq!(
        found[0].to_string(),
        "variable range 5 has no effect: uncachable wins wherever it matches: \
         0xfb000000-0xfbffffff (16 MiB)"
    );
    // Only once UC is gone from there does WC meet WB.
    cpu.variable[4].mask = 0;
    let overlap = Kind::UndefinedOverlap { pairs: [0, 5] };
    assert!(kinds(&alone(&cpu)).contains(&overlap));
}

/// 038, 040, 042: the PAT firmware left, Xen's, and the one of reset.
#[test]
fn pat_layouts_of_reports() {
    let mut cpu = machine("042-ds620slim-39bit", 10);
    for (raw, wanted) in [
        (0, vec![Kind::PatZero]),
        (0x0007_0106_0007_0106, vec![]),
        (0x0000_0501_0007_0406, vec![]),
        (0x0007_0406_0007_0406, vec![Kind::PatWithoutWc]),
    ] {
        cpu.pat = Some(Pat::from_raw(raw));
        assert_eq!(kinds(&alone(&cpu)), wanted, "{raw:#x}");
    }
}

/// 045: which registers are useless depends on the fixed ranges being in force.
#[test]
fn a_range_under_the_fixed_ones() {
    let mut cpu = machine("045-aspire-one-uc-under-1m", 8);
    let found = alone(&cpu);
    assert_eq!(
        found[1].to_string(),
        "variable range 7 has no effect: the fixed ranges decide wherever it matches: \
         0x0-0x1ffff (128 KiB)"
    );
    assert!(found[1].fix().to_string().starts_with("clear its V bit"));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    assert_eq!(
        kinds(&alone(&cpu)),
        [redundant(1), Kind::NoFreePair { pairs: 8 }]
    );
}

//! Each fault planted in a sound machine: it is named, with its memory, and nothing else is.

use mtrr_pat::compare::SameMap;
use mtrr_pat::diagnose::{
    Context, Extent, Finding, Kind, Place, Registers, Removal, Severity, alike,
};
use mtrr_pat::memtype::{MemType, ReservedType};
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MsrAddr, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

use super::findings;
use super::machines::{Machine, sound, sound_with_pair};

const UC: MtrrType = MtrrType::Defined(MemType::Uncachable);

fn examined(machine: &Machine) -> Vec<Finding> {
    let context = Context::bare_metal().with_ram(&machine.ram);
    findings(&[machine.cpu], &context)
}

/// The only finding there is.
fn only(found: &[Finding]) -> Finding {
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0]
}

fn said(found: &[Finding], kind: Kind) -> Finding {
    let all: Vec<_> = found.iter().filter(|one| one.kind == kind).collect();
    assert_eq!(all.len(), 1, "{kind:?} in {found:#?}");
    *all[0]
}

fn reserved_byte() -> impl Strategy<Value = u8> {
    prop_oneof![Just(2u8), Just(3), 7..=255u8]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sound_machine_has_no_findings(machine in sound()) {
        prop_assert_eq!(examined(&machine), []);
        let right = Context::bare_metal().with_width(machine.cpu.phys_bits);
        prop_assert_eq!(findings(&[machine.cpu], &right), []);
        prop_assert_eq!(findings(&[machine.cpu; 3], &Context::hypervisor()), []);
    }

    #[test]
    fn off_but_programmed(mut machine in sound(), fixed_too: bool) {
        machine.cpu.def_type = MtrrDefType::from_raw(if fixed_too { MtrrDefType::FE } else { 0 });
        let found = examined(&machine);
        prop_assert_eq!(found.len(), 2);
        prop_assert_eq!(said(&found, Kind::OffProgrammed).severity, Severity::Error);
        let uncached = said(&found, Kind::RamNotWriteBack { memtype: UC });
        prop_assert_eq!(uncached.bytes(), machine.ram_bytes());
        let guest = Context::hypervisor().with_ram(&machine.ram);
        let found = only(&findings(&[machine.cpu], &guest));
        prop_assert_eq!((found.kind, found.severity), (Kind::OffProgrammed, Severity::Warning));
    }

    #[test]
    fn off_and_blank(machine in sound(), junk in reserved_byte(), junk_base: u64) {
        let mut cpu = Snapshot::empty(machine.cpu.phys_bits);
        cpu.cap = machine.cpu.cap;
        cpu.pat = machine.cpu.pat;
        for leftover in [false, true] {
            if leftover {
                // Reset leaves all but V and E undefined.
                cpu.fixed = [u64::from_le_bytes([junk; 8]); 11];
                cpu.variable[0].base = junk_base;
            }
            let found = findings(&[cpu], &Context::bare_metal().with_ram(&machine.ram));
            prop_assert_eq!(said(&found, Kind::OffBlank).severity, Severity::Error);
            let uncached = said(&found, Kind::RamNotWriteBack { memtype: UC });
            prop_assert_eq!(uncached.bytes(), machine.ram_bytes());
            let guest = Context::hypervisor().with_ram(&machine.ram);
            let found = only(&findings(&[cpu], &guest));
            prop_assert_eq!((found.kind, found.severity), (Kind::OffBlank, Severity::Info));
        }
    }

    #[test]
    fn ram_outside_every_range(mut machine in sound(), start in 0..1u64 << 30, size in 1..1u64 << 30) {
        let start = (1 << 36) + start;
        machine.ram.push(start..start + size);
        let found = only(&examined(&machine));
        prop_assert_eq!(found.kind, Kind::RamNotWriteBack { memtype: UC });
        prop_assert_eq!(found.severity, Severity::Error);
        prop_assert_eq!(found.extent, Some(Extent { start, end: start + size, bytes: size }));
    }

    #[test]
    fn ram_above_the_address_width(mut machine in sound(), size in 1..1u64 << 40) {
        let end = machine.cpu.phys_bits.end();
        machine.ram.push(end..end + size);
        let found = only(&examined(&machine));
        prop_assert_eq!((found.kind, found.bytes()), (Kind::RamBeyondWidth, size));
    }

    #[test]
    fn nothing_write_back(mut machine in sound(), memtype in 0..4usize) {
        for pair in 0..machine.used {
            *machine.pair(pair) = VariableMtrr::default();
        }
        let default = [0, 1, 4, 5][memtype];
        let word = MtrrDefType::E | MtrrDefType::FE | default;
        machine.cpu.def_type = MtrrDefType::from_raw(word);
        let default = MtrrType::Defined(MemType::from_field(default as u8).unwrap());
        let found = only(&findings(&[machine.cpu], &Context::bare_metal()));
        prop_assert_eq!(found.kind, Kind::NothingWriteBack { default });
    }

    #[test]
    fn mask_for_a_narrower_machine(
        (mut machine, pair) in sound_with_pair(),
        missing in 1..8u8,
        all: bool,
    ) {
        let width = machine.cpu.phys_bits;
        let mask_bits = (width.get() - missing).max(36);
        let pairs = if all { 0..machine.used } else { pair..pair + 1 };
        let all = pairs.len() == usize::from(machine.used);
        for pair in pairs.clone() {
            machine.pair(pair).mask &= (1 << mask_bits) - 1;
        }
        let found = findings(&[machine.cpu], &Context::bare_metal());
        for pair in pairs {
            let found = said(&found, Kind::MaskWidth { pair, mask_bits, width, all });
            let severity = if all { Severity::Warning } else { Severity::Error };
            prop_assert_eq!(found.severity, severity);
        }
    }

    #[test]
    fn mask_for_a_wider_machine(mut machine in sound(), more in 1..8u8) {
        let mask_bits = machine.cpu.phys_bits.get();
        let width = PhysBits::new(mask_bits.saturating_sub(more).max(36)).unwrap();
        machine.cpu.phys_bits = width;
        let wider = PhysBits::new(mask_bits).unwrap();
        let found = findings(&[machine.cpu], &Context::bare_metal().with_width(wider));
        for pair in 0..machine.used {
            said(&found, Kind::MaskWidth { pair, mask_bits, width, all: true });
        }
        said(&found, Kind::WidthDisagrees { snapshot: width, expected: wider });
        prop_assert_eq!(found.len(), usize::from(machine.used) + 1);
    }

    #[test]
    fn mask_with_a_hole((mut machine, pair) in sound_with_pair(), bit in 33..51u32) {
        let bit = bit.min(u32::from(machine.cpu.phys_bits.get()) - 2);
        machine.pair(pair).mask &= !(1 << bit);
        let block = machine.ram[usize::from(pair) + 1].clone();
        let found = findings(&[machine.cpu], &Context::bare_metal());
        let holes = said(&found, Kind::MaskHoles { pair, blocks: 2 });
        let whole = if pair == 0 { 0..block.end } else { block };
        prop_assert_eq!(holes.bytes(), 2 * (whole.end - whole.start));
    }

    #[test]
    fn base_bits_under_the_mask((mut machine, pair) in sound_with_pair(), bits in 1..1u64 << 16) {
        machine.pair(pair).base |= bits << 12;
        let base = machine.pair(pair).base & !0xfff;
        let block = machine.block(pair);
        let found = only(&examined(&machine));
        prop_assert_eq!(found.kind, Kind::BaseUnderMask { pair, base });
        let bytes = block.end - block.start;
        prop_assert_eq!(found.extent, Some(Extent { start: block.start, end: block.end, bytes }));
    }

    #[test]
    fn reserved_bits((mut machine, pair) in sound_with_pair(), low in 0..12u32, high in 52..64u32) {
        let n = usize::from(pair);
        for bit in [low, high] {
            let mut cpu = machine.cpu;
            if bit != 11 {
                cpu.variable[n].mask |= 1 << bit;
                let kind = Kind::ReservedBits { msr: MsrAddr::phys_mask(n), bits: 1 << bit };
                prop_assert_eq!(only(&findings(&[cpu], &Context::bare_metal())).kind, kind);
            }
        }
        machine.pair(pair).base |= 1 << high | 0xf00;
        let kind = Kind::ReservedBits { msr: MsrAddr::phys_base(n), bits: 1 << high | 0xf00 };
        prop_assert_eq!(only(&examined(&machine)).kind, kind);
    }

    #[test]
    fn a_range_inside_another_of_its_type((mut machine, pair) in sound_with_pair(), shift in 12..28u32, place: u64) {
        let size = 1 << shift;
        let block = machine.block(pair);
        let base = block.start + (place % ((block.end - block.start) / size)) * size;
        let inner = machine.add(base, size, MemType::WriteBack);
        let found = only(&examined(&machine));
        let hidden = base + size <= 0x10_0000;
        let removal = Removal::Together;
        let want = if hidden {
            Kind::NoEffect { pair: inner, winner: None, removal }
        } else {
            Kind::Redundant { pair: inner, removal }
        };
        prop_assert_eq!(found.kind, want);
        prop_assert_eq!(found.extent, Some(Extent { start: base, end: base + size, bytes: size }));
    }

    #[test]
    fn a_range_that_uc_overrules(mut machine in sound(), shift in 12..29u32, place: u64, memtype in 1..5usize) {
        let outer = machine.add(1 << 36, 1 << 30, MemType::Uncachable);
        // With default UC the outer range is redundant by itself: make the default WB.
        let word = MtrrDefType::E | MtrrDefType::FE | 6;
        machine.cpu.def_type = MtrrDefType::from_raw(word);
        for pair in 0..outer {
            *machine.pair(pair) = VariableMtrr::default();
        }
        let size = 1 << shift;
        let base = (1 << 36) + (place % ((1 << 30) / size)) * size;
        let inner = machine.add(base, size, MemType::ALL[memtype]);
        let found = only(&examined(&machine));
        let removal = Removal::Together;
        prop_assert_eq!(found.kind, Kind::NoEffect { pair: inner, winner: Some(UC), removal });
        prop_assert_eq!(found.bytes(), size);
    }

    #[test]
    fn the_same_range_twice((mut machine, pair) in sound_with_pair()) {
        let block = machine.block(pair);
        let second = machine.add(block.start, block.end - block.start, MemType::WriteBack);
        let found = examined(&machine);
        prop_assert_eq!(found.len(), 2);
        said(&found, Kind::Redundant { pair, removal: Removal::Alone });
        said(&found, Kind::Redundant { pair: second, removal: Removal::Together });
    }

    #[test]
    fn an_undefined_overlap((mut machine, pair) in sound_with_pair(), shift in 20..28u32, place: u64, protected: bool) {
        let size = 1 << shift;
        let block = machine.block(pair);
        let places = (block.end - block.start) / size;
        let base = block.start + (1 + place % (places - 1)) * size;
        let memtype = if protected { MemType::WriteProtected } else { MemType::WriteCombining };
        let inner = machine.add(base, size, memtype);
        let found = examined(&machine);
        prop_assert_eq!(found.len(), 2);
        let extent = Some(Extent { start: base, end: base + size, bytes: size });
        let overlap = said(&found, Kind::UndefinedOverlap { pairs: [pair, inner] });
        prop_assert_eq!((overlap.extent, overlap.severity), (extent, Severity::Error));
        let memtype = MtrrType::Undefined(Undefined::Mix);
        prop_assert_eq!(said(&found, Kind::RamNotWriteBack { memtype }).extent, extent);
    }

    #[test]
    fn ram_of_another_type((mut machine, pair) in sound_with_pair(), protected: bool) {
        let memtype = if protected { MemType::WriteProtected } else { MemType::WriteThrough };
        let range = machine.pair(pair);
        range.base = range.base & !0xff | u64::from(memtype.raw());
        let found = only(&examined(&machine));
        let want = if protected {
            Kind::RamWriteProtected
        } else {
            Kind::RamNotWriteBack { memtype: memtype.into() }
        };
        prop_assert_eq!((found.kind, found.severity), (want, Severity::Warning));
        let ram = machine.ram[usize::from(pair) + 1].clone();
        prop_assert_eq!(found.bytes(), ram.end - ram.start);
    }

    #[test]
    fn reserved_types((machine, pair) in sound_with_pair(), byte in reserved_byte(), field in 0..88usize, slot in 0..8u8) {
        let found = ReservedType(byte);
        let kind = |place| Kind::ReservedType { place, found };

        let mut broken = machine.clone();
        broken.pair(pair).base |= 0xff;
        broken.pair(pair).base ^= u64::from(!byte);
        said(&examined(&broken), kind(Place::Variable(pair)));
        broken.pair(pair).mask &= !VariableMtrr::V;
        prop_assert!(examined(&broken).iter().all(|one| one.kind != kind(Place::Variable(pair))));

        let mut broken = machine.clone();
        let word = MtrrDefType::E | MtrrDefType::FE | u64::from(byte);
        broken.cpu.def_type = MtrrDefType::from_raw(word);
        said(&examined(&broken), kind(Place::DefType));

        let mut broken = machine.clone();
        let mut bytes = broken.cpu.fixed[field / 8].to_le_bytes();
        bytes[field % 8] = byte;
        broken.cpu.fixed[field / 8] = u64::from_le_bytes(bytes);
        let of_field = said(&examined(&broken), kind(Place::Fixed));
        let steps = [0x1_0000, 0x4000, 0x4000, 0x1000];
        prop_assert_eq!(of_field.bytes(), steps[(field / 8).min(3)]);

        let mut broken = machine;
        let pat = Pat::LINUX.raw() & !(0xff << (8 * slot)) | u64::from(byte) << (8 * slot);
        broken.cpu.pat = Some(Pat::from_raw(pat));
        let found = findings(&[broken.cpu], &Context::bare_metal());
        let reserved = kind(Place::PatSlot(slot));
        // Bytes above 7 have bits a PAT never holds; they are reserved all the same. (7 is UC-.)
        prop_assert_eq!(found.iter().any(|one| one.kind == reserved), byte != 7);
    }

    #[test]
    fn no_pair_is_free(mut machine in sound()) {
        while machine.used < 10 {
            let base = 1 << 36 | u64::from(machine.used) << 21;
            machine.add(base, 1 << 20, MemType::WriteThrough);
        }
        let found = only(&examined(&machine));
        prop_assert_eq!(found.kind, Kind::NoFreePair { pairs: 10 });
    }

    #[test]
    fn top_mem2(mut machine in sound(), top in 1..256u64) {
        let top = (4 << 30) + (top << 23);
        machine.cpu.top_mem2 = top;
        machine.ram.truncate(2);
        for pair in 1..machine.used {
            *machine.pair(pair) = VariableMtrr::default();
        }
        machine.ram.push(4 << 30..top);
        let extent = Some(Extent { start: 4 << 30, end: top, bytes: top - (4 << 30) });
        let with = |bits: u64| {
            let mut machine = machine.clone();
            machine.cpu.syscfg = Some(SysCfg::from_raw(bits));
            examined(&machine)
        };
        prop_assert_eq!(with(0x60_0000), []);
        let found = with(0x20_0000);
        prop_assert_eq!(said(&found, Kind::Tom2NotWriteBack).extent, extent);
        prop_assert_eq!(said(&found, Kind::RamNotWriteBack { memtype: UC }).extent, extent);
        let found = with(0x40_0000);
        prop_assert_eq!(said(&found, Kind::Tom2Off).extent, extent);
        prop_assert_eq!(said(&found, Kind::RamNotWriteBack { memtype: UC }).extent, extent);
        // Covered by a variable range, forcing is not needed.
        machine.add(4 << 30, 4 << 30, MemType::WriteBack);
        machine.cpu.syscfg = Some(SysCfg::from_raw(0x20_0000));
        prop_assert_eq!(examined(&machine), []);
    }

    #[test]
    fn rd_mem_and_wr_mem(mut machine in sound(), field in 0..88usize, byte in 0..32u8) {
        let syscfg = |bits| Some(SysCfg::from_raw(bits));
        machine.cpu.syscfg = syscfg(1 << 18);
        prop_assert_eq!(only(&examined(&machine)).kind, Kind::FixedDramHidden);

        prop_assume!(MemType::from_field(byte & 7).is_ok());
        machine.cpu.syscfg = syscfg(3 << 18);
        machine.cpu.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
        let mut bytes = machine.cpu.fixed[field / 8].to_le_bytes();
        bytes[field % 8] = byte;
        machine.cpu.fixed[field / 8] = u64::from_le_bytes(bytes);
        let found = findings(&[machine.cpu], &Context::bare_metal());
        let visible = said(&found, Kind::FixedDramVisible);
        let steps = [0x1_0000, 0x4000, 0x4000, 0x1000];
        let missing = if byte & 0x18 == 0 { steps[(field / 8).min(3)] } else { 0 };
        prop_assert_eq!(visible.bytes(), 0x10_0000 - missing);
        // The table of the manual, as it is printed: RdMem, WrMem, types.
        let allowed = [(0, 0, "0145"), (0, 1, "0"), (1, 0, "05"), (1, 1, "0146")];
        let allowed = allowed.iter().any(|(read, write, types)| {
            byte >> 3 == read * 2 + write && types.contains(char::from(b'0' + (byte & 7)))
        });
        let reserved = found.iter().any(|one| one.kind == Kind::FixedDramReserved { byte });
        prop_assert_eq!(reserved, !allowed);
        let reserved_type = |one: &Finding| matches!(one.kind, Kind::ReservedType { .. });
        prop_assert!(!found.iter().any(reserved_type));
    }

    #[test]
    fn cpus_that_differ((machine, pair) in sound_with_pair(), cpus in 2..9usize, odd in 1..8usize, junk: u64) {
        let odd = odd.min(cpus - 1);
        let group = |change: &dyn Fn(&mut Snapshot)| {
            let mut all = vec![machine.cpu; cpus];
            change(&mut all[odd]);
            all[cpus - 1] = all[odd];
            let found = only(&findings(&all, &Context::bare_metal()));
            let Kind::CpuDiffers { cpu, count, registers, map, off } = found.kind else {
                panic!("{found:?}");
            };
            assert_eq!(cpu, odd);
            let like: Vec<_> = if odd == cpus - 1 { vec![odd] } else { vec![odd, cpus - 1] };
            assert_eq!(alike(&all, cpu).collect::<Vec<_>>(), like);
            assert_eq!(count, like.len());
            (registers, map == SameMap::Same, off, found.severity)
        };
        // What pairs not in use hold has no meaning.
        let unused = group(&|cpu| cpu.variable[9].base = junk | 1);
        prop_assert_eq!(unused, (Registers::UNUSED, true, false, Severity::Info));
        // Nor has the order of the pairs.
        let swapped = group(&|cpu| cpu.variable.swap(usize::from(pair), 9));
        prop_assert_eq!(swapped, (Registers::VARIABLE, true, false, Severity::Info));
        let lost = group(&|cpu| cpu.variable[usize::from(pair)].mask = 0);
        prop_assert_eq!(lost, (Registers::VARIABLE, false, false, Severity::Error));
        let fixed = group(&|cpu| cpu.fixed[10] = 0);
        prop_assert_eq!(fixed, (Registers::FIXED, false, false, Severity::Error));
        let pat = group(&|cpu| cpu.pat = Some(Pat::POWER_ON));
        prop_assert_eq!(pat, (Registers::PAT, true, false, Severity::Error));
        let blank = group(&|cpu| {
            let (cap, pat) = (cpu.cap, cpu.pat);
            *cpu = Snapshot::empty(cpu.phys_bits);
            (cpu.cap, cpu.pat) = (cap, pat);
        });
        let all_three = Registers::DEF_TYPE | Registers::FIXED | Registers::VARIABLE;
        prop_assert_eq!(blank, (all_three, false, true, Severity::Error));
        let routes = group(&|cpu| cpu.syscfg = Some(SysCfg::from_raw(1 << 20)));
        prop_assert_eq!(routes, (Registers::SYSCFG, true, false, Severity::Error));
    }
}

/// A range above 4 GiB is redundant when TOP_MEM2 makes all of it WB, not when it ends below.
#[test]
fn top_mem2_within_a_range() {
    let mut cpu = Snapshot::empty(PhysBits::new(40).unwrap());
    cpu.cap = Some(MtrrCap::from_raw(3));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    cpu.syscfg = Some(SysCfg::from_raw(0x60_0000));
    cpu.pat = Some(Pat::LINUX);
    let block = |base, size| {
        VariableMtrr::from_block(base, size, MemType::WriteBack, cpu.phys_bits).unwrap()
    };
    cpu.variable[0] = block(4 << 30, 4 << 30);
    // The whole space: what lies below 4 GiB and above TOP_MEM2 needs it.
    cpu.variable[1] = block(0, 1 << 40);
    for top in [5 << 30, 6 << 30, 8 << 30] {
        cpu.top_mem2 = top;
        let mut one = cpu;
        one.variable[1].mask = 0;
        let found = findings(&[one], &Context::bare_metal());
        let (pair, removal) = (0, Removal::Together);
        let redundant = found
            .iter()
            .any(|one| one.kind == Kind::Redundant { pair, removal });
        assert_eq!(redundant, top == 8 << 30, "{top:#x}");
        one.variable[0] = cpu.variable[1];
        let found = findings(&[one], &Context::bare_metal());
        assert_eq!(found, [], "{top:#x}");
    }
}

/// A range over the whole space has no width to tell; the masks of the others do.
#[test]
fn mask_zero_beside_masks_for_another_width() {
    let mut cpu = Snapshot::empty(PhysBits::new(40).unwrap());
    cpu.cap = Some(MtrrCap::from_raw(3));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    cpu.variable[0].mask = VariableMtrr::V;
    cpu.variable[1] = VariableMtrr {
        base: 6,
        mask: 0xf_8000_0800,
    };
    let found = findings(&[cpu], &Context::bare_metal());
    let (pair, mask_bits, width, all) = (1, 36, cpu.phys_bits, true);
    said(
        &found,
        Kind::MaskWidth {
            pair,
            mask_bits,
            width,
            all,
        },
    );
}

/// Neighbours are told apart by what they hold, and put together when that is the same.
#[test]
fn reserved_types_side_by_side() {
    let mut cpu = Snapshot::empty(PhysBits::MIN);
    cpu.cap = Some(MtrrCap::from_raw(0x101));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE | 6);
    cpu.fixed[0] = 0x0303_0203_0000_0000;
    let found: Vec<_> = findings(&[cpu], &Context::bare_metal())
        .into_iter()
        .filter_map(|one| match one.kind {
            Kind::ReservedType { found, .. } => Some((found.0, one.extent?.start, one.bytes())),
            _ => None,
        })
        .collect();
    assert_eq!(
        found,
        [
            (3, 0x4_0000, 0x1_0000),
            (2, 0x5_0000, 0x1_0000),
            (3, 0x6_0000, 0x2_0000)
        ]
    );
}

#[test]
fn pat_layouts() {
    let kinds = |raw: u64| {
        let mut cpu = Snapshot::empty(PhysBits::MIN);
        cpu.cap = Some(MtrrCap::from_raw(1));
        cpu.def_type = MtrrDefType::from_raw(0x806);
        cpu.pat = Some(Pat::from_raw(raw));
        let found = findings(&[cpu], &Context::bare_metal());
        found.iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(0), [Kind::PatZero]);
    assert_eq!(kinds(Pat::POWER_ON.raw()), [Kind::PatWithoutWc]);
    assert_eq!(kinds(Pat::LINUX.raw()), []);
    assert_eq!(kinds(Pat::LOW_HALF_UNTOUCHED.raw()), []);
    assert_eq!(kinds(0x0000_0501_0007_0406), []);
    assert_eq!(kinds(0x0606_0606_0606_0601), [Kind::PatSlot0NotWriteBack]);
}

#[test]
fn machines_without() {
    let cpu = Snapshot::empty(PhysBits::MIN);
    let found = findings(&[cpu], &Context::hypervisor());
    assert_eq!(said(&found, Kind::NoMtrr).severity, Severity::Info);
    assert_eq!(said(&found, Kind::NoPat).severity, Severity::Info);
    let found = findings(&[cpu], &Context::bare_metal());
    assert_eq!(said(&found, Kind::NoMtrr).severity, Severity::Error);
    assert_eq!(findings(&[], &Context::bare_metal()), []);
}

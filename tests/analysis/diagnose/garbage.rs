//! Register files nobody would program: never a panic, never without an end.

use std::ops::Range;

use mtrr_pat::diagnose::{Context, Kind};
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MAX_VARIABLE, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::findings;
use crate::oracle::Rng;

/// A word with few or many bits set, or one that could be meant.
fn word(rng: &mut Rng) -> u64 {
    match rng.below(5) {
        0 => rng.next(),
        1 => rng.next() & rng.next() & rng.next(),
        2 => rng.next() | rng.next() | rng.next(),
        3 => 1 << rng.below(64),
        _ => (!0u64 << rng.below(64)) & (!0u64 >> rng.below(20)),
    }
}

fn file(rng: &mut Rng) -> Snapshot {
    let width = 32 + rng.below(21) as u8;
    let mut cpu = Snapshot::empty(PhysBits::new(width).unwrap());
    let vcnt = if rng.one_in(2) { 40 } else { rng.below(256) };
    cpu.cap = (!rng.one_in(20)).then(|| MtrrCap::from_raw(word(rng) & !0xff | vcnt));
    cpu.def_type = MtrrDefType::from_raw(word(rng) | if rng.one_in(2) { 0x800 } else { 0 });
    let legal = rng.one_in(2);
    for range in &mut cpu.variable {
        *range = VariableMtrr {
            base: word(rng),
            mask: word(rng) | if rng.one_in(4) { 0 } else { VariableMtrr::V },
        };
        if legal {
            range.base = range.base & !0xff | [0, 1, 4, 5, 6][rng.below(5) as usize];
        }
    }
    for fixed in &mut cpu.fixed {
        *fixed = word(rng);
    }
    cpu.pat = (!rng.one_in(4)).then(|| Pat::from_raw(word(rng)));
    cpu.syscfg = rng.one_in(2).then(|| SysCfg::from_raw(word(rng)));
    cpu.top_mem2 = word(rng);
    cpu
}

#[test]
fn any_registers_give_an_answer() {
    let mut rng = Rng(2024);
    let (mut undecided, mut total) = (0, 0);
    for _ in 0..1000 {
        let cpus = [file(&mut rng), file(&mut rng)];
        let ram: Vec<Range<u64>> = (0..rng.below(4))
            .map(|_| word(&mut rng)..word(&mut rng))
            .collect();
        for context in [Context::bare_metal().with_ram(&ram), Context::hypervisor()] {
            let found = findings(&cpus, &context);
            undecided += usize::from(found.iter().any(|one| one.kind == Kind::Undecided));
            total += 1;
        }
    }
    assert_eq!(undecided, 0, "of {total}");
}

/// The worst thought of so far: 40 ranges that each ask for another bit, types mixed.
#[test]
fn one_bit_masks() {
    let mut cpu = Snapshot::empty(PhysBits::MAX);
    cpu.cap = Some(MtrrCap::from_raw(MAX_VARIABLE as u64));
    cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    for (n, range) in cpu.variable.iter_mut().enumerate() {
        let bit = 1 << (12 + n);
        *range = VariableMtrr {
            base: bit | [1, 4, 5, 6][n % 4],
            mask: bit | VariableMtrr::V,
        };
    }
    let found = findings(&[cpu], &Context::bare_metal());
    assert!(found.iter().all(|one| one.kind != Kind::Undecided));
    assert!(
        found
            .iter()
            .any(|one| matches!(one.kind, Kind::UndefinedOverlap { .. }))
    );
}

/// What contiguous masks can do costs little, with every pair in use in the widest space.
#[test]
fn contiguous_masks_are_always_decided() {
    let mut rng = Rng(7);
    let space = (1 << 52) - 1;
    for _ in 0..300 {
        let mut cpu = Snapshot::empty(PhysBits::MAX);
        cpu.cap = Some(MtrrCap::from_raw(MAX_VARIABLE as u64 | 0x500));
        cpu.def_type = MtrrDefType::from_raw(0xc00);
        cpu.syscfg = Some(SysCfg::from_raw(0x74_0000));
        cpu.top_mem2 = rng.next() >> rng.below(30);
        for range in &mut cpu.variable {
            let size = 12 + rng.below(41);
            *range = VariableMtrr {
                base: (rng.next() & space & !0xfff) | [0, 1, 4, 5, 6][rng.below(5) as usize],
                mask: space & !((1u64 << size) - 1) | VariableMtrr::V,
            };
        }
        let ram = [0..0x9fc00, 0x10_0000..rng.next() & space];
        let found = findings(&[cpu], &Context::bare_metal().with_ram(&ram));
        assert!(found.iter().all(|one| one.kind != Kind::Undecided));
    }
}

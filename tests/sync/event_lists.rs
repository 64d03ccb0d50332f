//! What one CPU does to its registers and caches on each path, instruction by instruction.

mod amd;
mod ap;
mod cpu_state;

use crate::common::lists::{
    CD, CR4, FLUSHES, WINDOW_CLOSES, all, disables, enables, read_back, through_window,
    window_opens,
};
use crate::common::one_cpu::{Case, another_map, rdmsrs, reads, wrmsrs};
use mtrr_pat::cpu::{CR4_PCIDE, CR4_PGE};
use mtrr_pat::delta::Changes;
use mtrr_pat::memtype::MemType;
use mtrr_pat::policy::CacheFlush;
use mtrr_pat::program::Need;
use mtrr_pat::regs::{MtrrDefType, VariableMtrr};
use mtrr_pat::sim::{CR0_KERNEL, Config, Op, firmware_map};

#[test]
fn in_sync_only_reads() {
    let map = firmware_map();
    let ran = Case::new(map, map).run();
    ran.assert_did(&all(&[&reads(&map), &[Op::ReadCr0(CR0_KERNEL)]]));
    assert_eq!((rdmsrs(&ran.ops), ran.need), (33, Need::Nothing));
    assert_eq!(ran.changes, Changes::empty());
    let counters = ran.machine.counters(0);
    assert_eq!(counters.register_writes(), 0);
    assert_eq!(counters.pause + counters.locked + counters.shared_loads, 0);
}

#[test]
fn first_arrival_reads_the_capabilities_too() {
    let map = firmware_map();
    let mut case = Case::new(map, map);
    case.first = true;
    let ran = case.run();
    ran.assert_did(&all(&[
        &[Op::Rdmsr(0xfe, 0xd0a)],
        &reads(&map),
        &[Op::ReadCr0(CR0_KERNEL)],
    ]));
    assert_eq!(rdmsrs(&ran.ops), 34);
}

#[test]
fn in_sync_counts_follow_what_exists() {
    let mut small = firmware_map();
    small.cap = Some(mtrr_pat::regs::MtrrCap::from_raw(0x408));
    small.fixed = [0; 11];
    let ran = Case::new(small, small).run();
    ran.assert_did(&all(&[&reads(&small), &[Op::ReadCr0(CR0_KERNEL)]]));
    assert_eq!(rdmsrs(&ran.ops), 1 + 16 + 1);
}

#[test]
fn one_register_costs_it_and_two_of_def_type() {
    let want = firmware_map();
    let mut have = want;
    have.fixed[3] = 0x0606_0606_0606_0004;
    let ran = Case::flushing_always(have, want).run();
    // The whole list once in full, so that the helpers above have something to agree with.
    let mut expected = reads(&have);
    expected.extend([
        Op::ReadCr0(0x8001_0033),
        Op::Cli,
        Op::ReadCr0(0x8001_0033),
        Op::Cr0(0xc001_0033),
        Op::Wbinvd,
        Op::ReadCr4(0xa0),
        Op::Cr4(0x20),
        Op::Wrmsr(0x2ff, 0x400),
        Op::Rdmsr(0x2ff, 0x400),
        Op::Wbinvd,
        Op::Wrmsr(0x268, 0x0606_0606_0606_0606),
        Op::Rdmsr(0x268, 0x0606_0606_0606_0606),
        Op::Wrmsr(0x2ff, 0xc00),
        Op::Rdmsr(0x2ff, 0xc00),
        Op::ReadCr3(0x1000),
        Op::Cr3(0x1000),
        Op::Cr0(0x8001_0033),
        Op::Cr4(0xa0),
        Op::Sti,
    ]);
    ran.assert_did(&expected);
    let writes = [Op::Wrmsr(0x268, want.fixed[3])];
    ran.assert_did(&through_window(&have, &want, &writes));
    assert_eq!((wrmsrs(&ran.ops), ran.changes), (3, Changes::FIXED));
}

#[test]
fn def_type_alone_costs_two() {
    let want = firmware_map();
    for raw in [
        0,
        MtrrDefType::E,
        MtrrDefType::E | MtrrDefType::FE | 6,
        MtrrDefType::FE,
    ] {
        let mut have = want;
        have.def_type = MtrrDefType::from_raw(raw);
        let ran = Case::flushing_always(have, want).run();
        ran.assert_did(&through_window(&have, &want, &[]));
        assert_eq!((wrmsrs(&ran.ops), ran.changes), (2, Changes::DEFAULT));
    }
}

#[test]
fn k_registers_cost_k_plus_two_and_with_def_type_k_plus_one() {
    let want = another_map();
    let old = firmware_map();
    for k in 1..=11 {
        let mut have = want;
        have.fixed[..k].copy_from_slice(&old.fixed[..k]);
        let ran = Case::new(have, want).run();
        assert_eq!((wrmsrs(&ran.ops), ran.result), (k + 2, Ok(())));
        have.def_type = old.def_type;
        let ran = Case::new(have, want).run();
        assert_eq!(
            (wrmsrs(&ran.ops), ran.result),
            (k + 2, Ok(())),
            "k + 1 with DEF_TYPE"
        );
    }
}

#[test]
fn all_different_costs_34_in_ascending_order() {
    let (have, want) = (firmware_map(), another_map());
    let ran = Case::flushing_always(have, want).run();
    let written = |read: &Op| match *read {
        Op::Rdmsr(msr, value) => Op::Wrmsr(msr, value),
        other => other,
    };
    // Fixed, variable, PAT: what reading finds afterwards, in another order.
    let found: Vec<Op> = reads(&want).iter().map(written).collect();
    let writes = all(&[&found[21..32], &found[1..21], &found[32..]]);
    ran.assert_did(&through_window(&have, &want, &writes));
    assert_eq!(wrmsrs(&ran.ops), 34);
    let every = Changes::FIXED | Changes::VARIABLE | Changes::DEFAULT | Changes::PAT;
    assert_eq!((ran.need, ran.changes), (Need::Window, every));
}

#[test]
fn pairs_not_in_use_need_no_window() {
    let want = firmware_map();
    let mut have = want;
    have.variable[9] = VariableMtrr {
        base: 0x1234_5006,
        mask: 0x7000,
    };
    let ran = Case::new(have, want).run();
    ran.assert_did(&all(&[
        &reads(&have),
        &[
            Op::ReadCr0(CR0_KERNEL),
            Op::Wrmsr(0x212, 0),
            Op::Rdmsr(0x212, 0),
            Op::Wrmsr(0x213, 0),
            Op::Rdmsr(0x213, 0),
        ],
    ]));
    assert_eq!(ran.need, Need::UnusedPairs);
    assert_eq!(ran.changes, Changes::VARIABLE);
}

#[test]
fn a_pair_in_use_on_one_side_needs_the_window_and_the_others_stay_outside() {
    let want = firmware_map();
    let mut have = want;
    have.variable[9].base = 6;
    let bits = want.phys_bits;
    have.variable[8] =
        VariableMtrr::from_block(0x4000_0000, 0x1000, MemType::WriteThrough, bits).unwrap();
    let ran = Case::flushing_always(have, want).run();
    ran.assert_did(&all(&[
        &reads(&have),
        &[Op::ReadCr0(CR0_KERNEL)],
        &read_back(&[Op::Wrmsr(0x212, 0)]),
        &window_opens(CR0_KERNEL),
        &disables(have.def_type),
        &read_back(&[Op::Wrmsr(0x210, 0), Op::Wrmsr(0x211, 0)]),
        &enables(want.def_type),
        &WINDOW_CLOSES,
    ]));
    assert_eq!(ran.need, Need::Window);
}

#[test]
fn without_global_pages_cr3_is_reloaded_and_cr4_left_alone() {
    let want = firmware_map();
    let mut have = want;
    have.def_type = have.def_type.disabled();
    let mut case = Case::flushing_always(have, want);
    case.config.cr4 = CR4 & !CR4_PGE;
    let ran = case.run();
    ran.assert_did(&all(&[
        &reads(&have),
        &[
            Op::ReadCr0(CR0_KERNEL),
            Op::Cli,
            Op::ReadCr0(CR0_KERNEL),
            Op::Cr0(CD),
            Op::Wbinvd,
            Op::ReadCr4(0x20),
        ],
        &FLUSHES,
        &disables(have.def_type),
        &enables(want.def_type),
        &[Op::Cr0(CR0_KERNEL), Op::Sti],
    ]));
    assert_eq!(ran.machine.counters(0).cr4_writes, 0);
}

#[test]
fn with_pcids_pge_is_toggled_because_cr3_reaches_one_of_them() {
    let want = firmware_map();
    let mut have = want;
    have.def_type = have.def_type.disabled();
    for pge in [CR4_PGE, 0] {
        let cr4 = 0x20 | CR4_PCIDE | pge;
        let off = cr4 & !CR4_PGE;
        let flush = [Op::Cr4(off | CR4_PGE), Op::Cr4(off)];
        let mut case = Case::flushing_always(have, want);
        case.config.cr4 = cr4;
        let opens = if pge == 0 { &flush[..] } else { &flush[1..] };
        let restores: &[Op] = if pge == 0 { &[] } else { &[Op::Cr4(cr4)] };
        case.run().assert_did(&all(&[
            &reads(&have),
            &[
                Op::ReadCr0(CR0_KERNEL),
                Op::Cli,
                Op::ReadCr0(CR0_KERNEL),
                Op::Cr0(CD),
                Op::Wbinvd,
                Op::ReadCr4(cr4),
            ],
            opens,
            &disables(have.def_type),
            &enables(want.def_type)[..2],
            &flush,
            &[Op::Cr0(CR0_KERNEL)],
            restores,
            &[Op::Sti],
        ]));
    }
}

#[test]
fn a_machine_without_fixed_ranges_or_pairs_has_a_window_of_two_writes() {
    let mut want = firmware_map();
    want.cap = Some(mtrr_pat::regs::MtrrCap::from_raw(0x400));
    want.fixed = [0; 11];
    want.variable = [VariableMtrr::default(); 40];
    let mut have = want;
    have.def_type = MtrrDefType::from_raw(MtrrDefType::E | 6);
    let mut config = Config::new(1, 1);
    config.boot = have;
    let mut case = Case::on(config, want);
    case.policy.cache_flush = CacheFlush::Always;
    let ran = case.run();
    ran.assert_did(&through_window(&have, &want, &[]));
    assert_eq!((rdmsrs(&ran.ops), wrmsrs(&ran.ops)), (2 + 2, 2));
}

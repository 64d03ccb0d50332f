//! The same on AMD: SYSCFG and TOP_MEM2 are compared, RdMem and WrMem saved if asked for.

use crate::common::lists::read_back;
use crate::common::one_cpu::{Case, Ran, fixed_reads, mtrr_reads, rdmsrs, reads, wrmsrs};
use mtrr_pat::delta::Changes;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::AmdFixed;
use mtrr_pat::program::Need;
use mtrr_pat::regs::SysCfg;
use mtrr_pat::sim::{At, CR0_KERNEL, Config, Fault, Op, What};
use mtrr_pat::snapshot::Snapshot;

const SYSCFG: u32 = 0xc001_0010;
const TOP_MEM2: u32 = 0xc001_001d;
const BIT_19: u64 = 1 << 19;

fn amd_map() -> Snapshot {
    Config::amd(1, 1).boot
}

fn amd(have: Snapshot, want: Snapshot) -> Case {
    let mut config = Config::amd(1, 1);
    config.boot = have;
    Case::on(config, want)
}

fn saving(have: Snapshot, want: Snapshot) -> Ran {
    let mut case = amd(have, want);
    case.policy.amd_fixed = AmdFixed::SaveDramBits;
    case.run()
}

/// The reads of a whole state, RdMem and WrMem made visible for them.
fn exposing_reads(of: &Snapshot) -> Vec<Op> {
    let syscfg = of.syscfg.unwrap().raw();
    let mut ops = mtrr_reads(of);
    ops.extend([
        Op::Rdmsr(SYSCFG, syscfg),
        Op::Rdmsr(TOP_MEM2, of.top_mem2),
        Op::Wrmsr(SYSCFG, syscfg | BIT_19),
    ]);
    ops.extend(fixed_reads(of));
    ops.push(Op::Wrmsr(SYSCFG, syscfg));
    ops.push(Op::Rdmsr(0x277, of.pat.unwrap().raw()));
    ops
}

#[test]
fn in_sync_reads_35_registers() {
    let map = amd_map();
    let ran = amd(map, map).run();
    let expected = [&reads(&ran.want)[..], &[Op::ReadCr0(CR0_KERNEL)]].concat();
    ran.assert_did(&expected);
    assert_eq!(rdmsrs(&ran.ops), 35);
    assert_eq!(ran.machine.counters(0).register_writes(), 0);
    assert_eq!(
        ran.want.fixed[0], 0x0606_0606_0606_0606,
        "bits 3 and 4 read as zero"
    );
}

#[test]
fn hidden_dram_bits_are_left_as_they_are() {
    let want = amd_map();
    let mut have = want;
    have.fixed[0] = 0x1b1e_1e1e_1e1e_1e1e;
    have.def_type = have.def_type.disabled();
    let ran = amd(have, want).run();
    assert_eq!((ran.result, wrmsrs(&ran.ops)), (Ok(()), 3));
    assert!(ran.ops.contains(&Op::Wrmsr(0x250, 0x0606_0606_0606_0606)));
    assert!(!ran.ops.iter().any(|op| matches!(op, Op::Wrmsr(SYSCFG, _))));
    let left = ran.machine.registers(0).fixed[0];
    assert_eq!(left, 0x1e1e_1e1e_1e1e_1e1e, "types changed, routing not");
}

#[test]
fn saved_dram_bits_are_compared_with_bit_19_set_for_the_moment() {
    let map = amd_map();
    let ran = saving(map, map);
    let expected = [&exposing_reads(&map)[..], &[Op::ReadCr0(CR0_KERNEL)]].concat();
    ran.assert_did(&expected);
    assert_eq!(ran.machine.registers(0), map);
}

#[test]
fn saved_dram_bits_are_written_and_read_back_with_bit_19_set() {
    let want = amd_map();
    let mut have = want;
    // What firmware leaves that knows nothing of the bits: everything below 1 MiB goes to MMIO.
    have.fixed = [0x0606_0606_0606_0606; 11];
    have.fixed[2] = 0;
    let ran = saving(have, want);
    let syscfg = want.syscfg.unwrap().raw();
    let written: Vec<Op> = fixed_reads(&want)
        .into_iter()
        .filter_map(|op| match op {
            Op::Rdmsr(msr, value) if value != 0 => Some(Op::Wrmsr(msr, value)),
            _ => None,
        })
        .collect();
    assert_eq!(written.len(), 10);
    let expected = [
        &exposing_reads(&have)[..],
        &[
            Op::ReadCr0(CR0_KERNEL),
            Op::Cli,
            Op::ReadCr0(CR0_KERNEL),
            Op::Cr0(CR0_KERNEL | 1 << 30),
            Op::Wbinvd,
            Op::ReadCr4(0xa0),
            Op::Cr4(0x20),
            Op::Wrmsr(0x2ff, 0x400),
            Op::Rdmsr(0x2ff, 0x400),
            Op::Wbinvd,
            Op::Wrmsr(SYSCFG, syscfg | BIT_19),
        ],
        &read_back(&written),
        &[
            Op::Wrmsr(0x2ff, 0xc00),
            Op::Rdmsr(0x2ff, 0xc00),
            Op::ReadCr3(0x1000),
            Op::Cr3(0x1000),
            Op::Wrmsr(SYSCFG, syscfg),
            Op::Cr0(CR0_KERNEL),
            Op::Cr4(0xa0),
            Op::Sti,
        ],
    ]
    .concat();
    ran.assert_did(&expected);
    assert_eq!(ran.machine.registers(0), want);
}

#[test]
fn a_bit_19_that_firmware_left_set_is_cleared_and_the_types_are_restored() {
    let want = amd_map();
    let mut have = want;
    have.syscfg = Some(have.syscfg.unwrap() | SysCfg::MTRR_FIX_DRAM_MOD_EN);
    let ran = amd(have, want).run();
    assert_eq!((ran.result, ran.need), (Ok(()), Need::SysCfg));
    assert_eq!((ran.changes, wrmsrs(&ran.ops)), (Changes::ROUTING, 1));
    assert_eq!(ran.machine.registers(0), want);
    have.pat = Some(Pat::LINUX);
    let ran = amd(have, want).run();
    assert_eq!((ran.result, ran.need), (Ok(()), Need::Pat));
    assert_eq!(ran.changes, Changes::PAT | Changes::ROUTING);
    assert_eq!((wrmsrs(&ran.ops), ran.machine.registers(0)), (2, want));
    // Other types: restored, and RdMem and WrMem stay what this CPU has.
    have.fixed[5] = 0x1c1c_1c1c_1c1c_1c1c;
    let ran = amd(have, want).run();
    assert_eq!((ran.result, ran.need), (Ok(()), Need::Window));
    assert_eq!(ran.machine.registers(0).fixed, want.fixed);
}

#[test]
fn a_bit_19_that_cannot_be_cleared_is_told_and_the_types_are_right() {
    let want = amd_map();
    let mut have = want;
    have.syscfg = Some(have.syscfg.unwrap() | SysCfg::MTRR_FIX_DRAM_MOD_EN);
    have.fixed[5] = 0x1c1c_1c1c_1c1c_1c1c;
    for what in [What::Ignored, What::Gp] {
        let mut case = amd(have, want);
        case.config.faults = vec![Fault::new(0, At::Wrmsr(5), what)]; // after the four of the probe
        let ran = case.run();
        let error = ran.result.unwrap_err();
        assert!(error.to_string().contains("the map is right"), "{error}");
        let types = |word: &u64| word & 0x0707_0707_0707_0707;
        let left = ran.machine.registers(0);
        assert!(
            left.fixed
                .iter()
                .map(types)
                .eq(want.fixed.iter().map(types))
        );
        assert_eq!(left.fixed[5] & 0x1818_1818_1818_1818, 0x1818_1818_1818_1818);
    }
}

#[test]
fn an_snp_host_never_has_its_syscfg_written() {
    let mut want = amd_map();
    want.syscfg = Some(want.syscfg.unwrap() | SysCfg::SNP_EN);
    let mut have = want;
    have.def_type = have.def_type.disabled();
    let ran = saving(have, want);
    assert_eq!(ran.result, Ok(()));
    assert!(!ran.ops.iter().any(|op| matches!(op, Op::Wrmsr(SYSCFG, _))));
    assert_eq!(wrmsrs(&ran.ops), 2);
}

#[test]
fn routing_is_reported_and_never_written() {
    let want = amd_map();
    for bit in [18, 20, 21, 22] {
        let mut have = want;
        have.syscfg = Some(SysCfg::from_raw(want.syscfg.unwrap().raw() ^ 1 << bit));
        let ran = amd(have, want).run();
        assert_eq!((ran.changes, ran.result), (Changes::ROUTING, Ok(())));
        assert_eq!(ran.machine.counters(0).register_writes(), 0);
    }
    let mut have = want;
    have.top_mem2 = 0x3_4000_0000;
    let ran = amd(have, want).run();
    assert_eq!((ran.changes, ran.need), (Changes::ROUTING, Need::Nothing));
    assert_eq!(ran.machine.counters(0).register_writes(), 0);
}

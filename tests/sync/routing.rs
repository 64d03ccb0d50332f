//! Registers that only firmware sets: read by the boot CPU and in a check, reported, never written.

use crate::common::one_cpu::reads;
use crate::common::{Kernel, MODES, SCOPES, aps, outcome, policy};
use mtrr_pat::delta::Changes;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{Iorr, MsrAddr, SysCfg};
use mtrr_pat::report::Path;
use mtrr_pat::routing::Routing;
use mtrr_pat::sim::{At, CR0_KERNEL, Config, Fault, Machine, Op, S3, Scribble, SimCpu, What};
use mtrr_pat::sync::Summary;

const TOP_MEM: u32 = 0xc001_001a;
const IORR_BASE0: u32 = 0xc001_0016;
const IORR_MASK1: u32 = 0xc001_0019;
const TME_ACTIVATE: u32 = 0x982;
/// Locked, enabled, AES-XTS 128, four bits of key numbers.
const TME_WORD: u64 = 0x0001_0004_0000_0003;

fn check(kernel: &Kernel, boot: &mut SimCpu<'_>) -> Summary {
    let ipis = boot.ipis();
    kernel.sync.check(boot, 0, |cpu| ipis.send(cpu)).unwrap()
}

/// Boots and brings all APs up, in line.
fn boot_all(kernel: &Kernel, boot: &mut SimCpu<'_>, mode: Resync) {
    let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
    assert_eq!((booted.path, booted.error), (Path::InSync, None));
    bring_up(kernel, boot);
}

fn bring_up(kernel: &Kernel, boot: &mut SimCpu<'_>) {
    let aps = aps(&boot.machine());
    assert!(kernel.bring_up(boot, &aps).is_empty());
    assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
}

/// What every CPU of a machine does to its registers in a check once all are up, and how many
/// differ.
fn checked(config: Config) -> (Vec<Vec<Op>>, u32, Kernel, Machine) {
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let differ = kernel.run(&machine, |boot| {
        boot_all(&kernel, boot, Resync::Early);
        machine.clear_log();
        check(&kernel, boot).out_of_sync
    });
    machine.check().unwrap();
    let cpus = 0..machine.config().cpus();
    // Toggling PGE is the flush at the end of any rendezvous.
    let compares = |op: &Op| {
        let read = matches!(op, Op::Rdmsr(..) | Op::RdmsrFault(_) | Op::ReadCr0(_));
        read || op.is_register_write() && !matches!(op, Op::Cr4(_))
    };
    let ops = cpus.map(|cpu| {
        let mut ops = machine.ops(cpu);
        ops.retain(compares);
        ops
    });
    (ops.collect(), differ, kernel, machine)
}

/// The reads of a check; RdMem and WrMem are hidden.
fn check_reads(machine: &Machine, cpu: usize, routing: &[Op]) -> Vec<Op> {
    let mut registers = machine.registers(cpu);
    if registers.syscfg.is_some() {
        for word in &mut registers.fixed {
            *word &= !0x1818_1818_1818_1818;
        }
    }
    let mut ops = reads(&registers);
    ops.push(Op::ReadCr0(CR0_KERNEL));
    ops.extend(routing);
    ops
}

fn amd_reads(top_mem: u64) -> Vec<Op> {
    let mut ops = vec![Op::Rdmsr(TOP_MEM, top_mem)];
    ops.extend((IORR_BASE0..=IORR_MASK1).map(|msr| Op::Rdmsr(msr, 0)));
    ops
}

/// The cores of a machine and, in it, the register that differs on one CPU.
fn odd_one_out() -> Vec<(Config, MsrAddr, u64)> {
    let mut iorr = Config::amd(3, 2);
    // In use everywhere; another base on one CPU.
    for (msr, value) in [(0xc001_0018, 0xe000_0018), (0xc001_0019, 0xffff_f000_0800)] {
        iorr.other_msrs.insert(msr, value);
    }
    let tme = Config::new(3, 2).with_tme(4);
    vec![
        (Config::amd(3, 2), MsrAddr::TOP_MEM, 0x4000_0000),
        (Config::amd(3, 2), MsrAddr::iorr_mask(0), 0xffff_f000_0800),
        (iorr, MsrAddr::iorr_base(1), 0xd000_0018),
        (tme, MsrAddr::TME_ACTIVATE, TME_WORD ^ 2 << 32),
    ]
}

#[test]
fn a_check_reads_five_registers_more_on_amd() {
    let (ops, differ, kernel, machine) = checked(Config::amd(2, 1));
    assert_eq!(differ, 0);
    for (cpu, ops) in ops.iter().enumerate() {
        let expected = check_reads(&machine, cpu, &amd_reads(0x8000_0000));
        assert_eq!(*ops, expected, "CPU {cpu}");
    }
    let found = Routing {
        top_mem: Some(0x8000_0000),
        iorr: [Some(Iorr::default()); 2],
        tme_activate: None,
    };
    assert_eq!(kernel.sync.routing(), Some(&found));
}

#[test]
fn a_check_reads_one_register_more_on_intel_with_memory_encryption() {
    let (ops, differ, kernel, machine) = checked(Config::new(2, 1).with_tme(4));
    assert_eq!(differ, 0);
    assert_eq!(machine.registers(1).phys_bits.get(), 39);
    let platform = kernel.sync.platform().unwrap();
    assert_eq!((platform.phys_bits.get(), platform.tme), (39, true));
    for (cpu, ops) in ops.iter().enumerate() {
        let more = [Op::Rdmsr(TME_ACTIVATE, TME_WORD)];
        assert_eq!(*ops, check_reads(&machine, cpu, &more), "CPU {cpu}");
    }
}

#[test]
fn a_check_reads_none_of_them_where_they_do_not_exist_or_a_hypervisor_decides() {
    let guest = |mut config: Config| {
        config.hypervisor = true;
        config
    };
    let not_in_effect = |mut config: Config| {
        let bits = SysCfg::MTRR_VAR_DRAM_EN | SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
        for map in [&mut config.boot, &mut config.aps] {
            map.syscfg = map.syscfg.map(|syscfg| syscfg - bits);
        }
        config
    };
    for config in [
        Config::new(2, 1),
        guest(Config::new(2, 1).with_tme(4)),
        guest(Config::amd(2, 1)),
        not_in_effect(Config::amd(2, 1)),
    ] {
        let (ops, differ, kernel, machine) = checked(config);
        assert_eq!(differ, 0);
        assert_eq!(kernel.sync.routing(), Some(&Routing::UNKNOWN));
        let amd = kernel.sync.platform().unwrap().amd;
        for (cpu, ops) in ops.iter().enumerate() {
            let mut expected = check_reads(&machine, cpu, &[]);
            expected.retain(|op| match op {
                Op::Rdmsr(0xc001_0010, _) => amd,
                op => !matches!(op, Op::Rdmsr(0xc001_001d, _)),
            });
            assert_eq!(*ops, expected, "CPU {cpu}");
        }
    }
}

#[test]
fn what_the_boot_cpu_cannot_read_is_not_tried_again_and_what_an_ap_cannot_is_no_difference() {
    let mut config = Config::amd(3, 1);
    config.faults = vec![
        Fault::new(0, At::Msr(MsrAddr::iorr_base(1)), What::Gp),
        Fault::new(1, At::Msr(MsrAddr::TOP_MEM), What::Gp),
        Fault::new(1, At::Msr(MsrAddr::iorr_mask(0)), What::Gp),
    ];
    config.cpu_msrs = vec![(1, MsrAddr::TOP_MEM, 0), (2, MsrAddr::iorr_mask(1), 0x800)];
    let (ops, differ, kernel, machine) = checked(config);
    assert_eq!(differ, 0);
    let known = kernel.sync.routing().unwrap();
    assert_eq!(known.iorr, [Some(Iorr::default()), None]);
    let first_three = &amd_reads(0x8000_0000)[..3];
    assert_eq!(ops[0], check_reads(&machine, 0, first_three));
    assert_eq!(ops[2], check_reads(&machine, 2, first_three));
    let faults = [
        Op::RdmsrFault(TOP_MEM),
        Op::Rdmsr(IORR_BASE0, 0),
        Op::RdmsrFault(IORR_BASE0 + 1),
    ];
    assert_eq!(ops[1], check_reads(&machine, 1, &faults));
}

#[test]
fn a_cpu_that_differs_is_named_and_left_alone() {
    for (config, msr, value) in odd_one_out() {
        for scope in SCOPES {
            for mode in MODES {
                let mut config = config.clone();
                config.scope = scope;
                config.cpu_msrs = vec![(3, msr, value)];
                let machine = Machine::new(config);
                let kernel = Kernel::new();
                kernel.run(&machine, |boot| {
                    boot_all(&kernel, boot, mode);
                    // Those that come online do not look.
                    assert_eq!(outcome(&kernel, 3).changes, Changes::empty());
                    for cpu in 1..6 {
                        let looks = |op: &Op| matches!(op, Op::Rdmsr(read, _) if *read == msr.0);
                        assert!(!machine.ops(cpu).iter().any(looks), "CPU {cpu}: {msr}");
                    }
                    let summary = check(&kernel, boot);
                    assert_eq!((summary.cpus, summary.differed), (6, 1), "{msr}");
                    assert_eq!(summary.out_of_sync, 1);
                    let found = outcome(&kernel, 3);
                    assert_eq!((found.path, found.error), (Path::Differs, None));
                    assert_eq!(found.changes, Changes::ROUTING);
                    let report = kernel.sync.report().to_string();
                    assert!(report.contains("routing       3"), "{report}");
                    // Nothing can be done about it, and nothing is.
                    machine.clear_log();
                    assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
                    assert_eq!(machine.counters(3).register_writes(), 0);
                    assert_eq!(check(&kernel, boot).out_of_sync, 1);
                });
                machine.check().unwrap();
            }
        }
    }
}

#[test]
fn firmware_that_brings_something_else_back_from_s3_is_found() {
    for (config, msr, value) in odd_one_out() {
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            boot_all(&kernel, boot, Resync::Early);
            assert_eq!(check(&kernel, boot).out_of_sync, 0);
            for (scribble, differ) in [
                (Scribble::LikeBoot, 0),
                (Scribble::Zeroed.with_msr(msr, value), 6),
                (
                    Scribble::only_cores([2], Scribble::Off.with_msr(msr, value)),
                    2,
                ),
                (Scribble::Off, 0),
            ] {
                kernel.sleep(boot, &S3::all(scribble));
                bring_up(&kernel, boot);
                assert_eq!(check(&kernel, boot).out_of_sync, differ, "{msr}");
            }
            // And what changes while the machine runs.
            machine.set_msr(4, msr, value);
            assert_eq!(check(&kernel, boot).out_of_sync, 1, "{msr}");
            assert_eq!(outcome(&kernel, 4).changes, Changes::ROUTING);
        });
        machine.check().unwrap();
    }
}

#[test]
fn a_key_that_was_brought_back_after_standby_is_no_difference() {
    let machine = Machine::new(Config::new(2, 1).with_tme(4));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        boot_all(&kernel, boot, Resync::Early);
        let restored = Scribble::LikeBoot.with_msr(MsrAddr::TME_ACTIVATE, TME_WORD | 0b1100);
        kernel.sleep(boot, &S3::all(restored));
        bring_up(&kernel, boot);
        assert_eq!(check(&kernel, boot).out_of_sync, 0);
    });
}

//! What an AP does between its arrival and its outcome, through the public life cycle.

use crate::common::one_cpu::{another_map, fixed_reads, mtrr_reads, rdmsrs, reads, wrmsrs};
use crate::common::{Kernel, SCOPES, policy, registers_only};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps};
use mtrr_pat::delta::Changes;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::report::{Outcome, Path};
use mtrr_pat::sim::{CR0_KERNEL, Config, Counters, Machine, Op, firmware_map};
use mtrr_pat::snapshot::Snapshot;
use std::sync::Mutex;

/// What the only AP did, and what came of it.
struct Arrived {
    ops: Vec<Op>,
    outcome: Outcome,
    counters: Counters,
    machine: Machine,
}

/// Starts the AP of a two-core machine; it comes back `times` times, going offline in between.
fn arrive(mut config: Config, aps: Snapshot, cr0: u64, times: usize, interrupts: bool) -> Arrived {
    config.aps = aps;
    config.ap_cr0 = cr0;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let done = Mutex::new(None);
    machine.run(
        |boot| {
            let _ = kernel
                .sync
                .boot_init(boot, 0, policy(Resync::Early))
                .unwrap();
            for _ in 0..times {
                kernel.sync.offline(1).unwrap();
                *done.lock().unwrap() = None;
                kernel.start(boot, 1).unwrap();
                while done.lock().unwrap().is_none() {
                    boot.work(1000);
                }
            }
        },
        |ap| {
            if interrupts {
                ap.sti();
            }
            let before = (machine.ops(1).len(), machine.counters(1));
            let outcome = kernel.sync.ap_online(ap, 1, |_| {}).unwrap();
            let ops = registers_only(&machine.ops(1)[before.0..]);
            assert_eq!(ap.interrupts_enabled(), interrupts);
            let mut counters = machine.counters(1);
            counters.pause -= before.1.pause;
            counters.locked -= before.1.locked;
            *done.lock().unwrap() = Some((ops, outcome, counters));
        },
        |_| {},
    );
    machine.check().unwrap();
    let (ops, outcome, counters) = done.into_inner().unwrap().unwrap();
    assert_eq!(machine.control_registers(1), (CR0_KERNEL, 0x1000, 0xa0));
    Arrived {
        ops,
        outcome,
        counters,
        machine,
    }
}

fn two_cores() -> Config {
    Config::new(2, 1)
}

const KERNEL: u64 = 0x10;
const RESET: u64 = 0x6000_0010;

/// A CPU's first look at a target it holds: what differs most often comes first.
fn first_look(of: &Snapshot) -> Vec<Op> {
    let mut ops = vec![
        Op::Rdmsr(MsrAddr::MTRRCAP.0, of.cap.unwrap().raw()),
        Op::Rdmsr(MsrAddr::MTRR_DEF_TYPE.0, of.def_type.raw()),
        Op::Rdmsr(MsrAddr::PAT.0, of.pat.unwrap().raw()),
    ];
    ops.extend(fixed_reads(of));
    ops.extend_from_slice(&mtrr_reads(of)[1..]);
    ops
}

#[test]
fn an_ap_in_sync_reads_and_waits_for_nobody() {
    let map = firmware_map();
    let arrived = arrive(two_cores(), map, KERNEL, 1, false);
    let expected = [&first_look(&map)[..], &[Op::ReadCr0(CR0_KERNEL)]].concat();
    assert_eq!(arrived.ops, expected);
    assert_eq!(rdmsrs(&arrived.ops), 34, "MTRRCAP on the first arrival");
    assert_eq!(arrived.outcome.path, Path::InSync);
    assert_eq!(arrived.counters.pause, 0, "waits for nobody");
    assert_eq!(
        arrived.counters.locked, 1,
        "counts itself online, nothing else"
    );
    assert_eq!(arrived.machine.counters(1).register_writes(), 0);
}

#[test]
fn an_ap_that_arrives_as_reset_left_it_leaves_with_caching_on() {
    for scope in SCOPES {
        for interrupts in [false, true] {
            let found = CR0_KERNEL | CR0_CD | CR0_NW;
            let mut config = two_cores();
            config.scope = scope;
            let map = firmware_map();
            let arrived = arrive(config.clone(), map, RESET, 1, interrupts);
            let on = [Op::ReadCr0(found), Op::Cr0(CR0_KERNEL)];
            let expected = [&first_look(&map)[..], &on].concat();
            let expected = masked(expected, interrupts);
            assert_eq!(arrived.ops, expected, "in sync but for CD and NW");
            assert_eq!(arrived.outcome.path, Path::CachingOn);
            assert_eq!(arrived.outcome.changes, Changes::CACHING);

            let arrived = arrive(config, another_map(), RESET, 1, interrupts);
            assert_eq!(arrived.outcome.path, Path::Window);
            assert_eq!(wrmsrs(&arrived.ops), 34);
            let every = Changes::FIXED
                | Changes::VARIABLE
                | Changes::DEFAULT
                | Changes::PAT
                | Changes::CACHING;
            assert_eq!(arrived.outcome.changes, every);
            let cr0 = |op: &&Op| matches!(op, Op::Cr0(_));
            let cr0: Vec<Op> = arrived.ops.iter().filter(cr0).copied().collect();
            assert_eq!(cr0, [Op::Cr0(CR0_KERNEL | CR0_CD), Op::Cr0(CR0_KERNEL)]);
            assert_eq!(arrived.machine.registers(1), map);
        }
    }
}

/// After S3, E is clear: the full comparison costs one look more, and MTRRCAP.
#[test]
fn an_ap_that_differs_is_compared_in_full_after_its_first_look() {
    let map = firmware_map();
    let mut asleep = map;
    asleep.def_type = asleep.def_type.disabled();
    let arrived = arrive(two_cores(), asleep, KERNEL, 1, false);
    let cap = Op::Rdmsr(MsrAddr::MTRRCAP.0, 0xd0a);
    let expected = [&[cap], &reads(&asleep)[..1], &[cap], &reads(&asleep)[..]].concat();
    assert_eq!(arrived.ops[..expected.len()], expected);
    assert_eq!(arrived.outcome.path, Path::Window);
    assert_eq!(arrived.outcome.changes, Changes::DEFAULT);
    assert_eq!(wrmsrs(&arrived.ops), 1 + 1, "E stays clear, then the word");
}

#[test]
fn a_cpu_that_comes_back_is_compared_whole_again() {
    let map = firmware_map();
    let arrived = arrive(two_cores(), map, KERNEL, 2, false);
    assert_eq!(rdmsrs(&arrived.ops), 34, "it may be another processor now");
    assert_eq!(arrived.outcome.path, Path::InSync);
}

#[test]
fn deferred_check_in_touches_no_register() {
    let machine = Machine::new({
        let mut config = Config::new(2, 1);
        config.aps = another_map();
        config
    });
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = kernel
            .sync
            .boot_init(boot, 0, policy(Resync::Deferred))
            .unwrap();
        kernel.bring_up(boot, &[1]);
        assert_eq!(machine.registers(1), another_map());
        let counters = machine.counters(1);
        assert_eq!(counters.rdmsr + counters.register_writes(), 0);
        assert_eq!(crate::common::outcome(&kernel, 1).path, Path::CheckedIn);
        assert_eq!(kernel.sync.online(), 1, "not yet in line");
        let summary = kernel.resync(boot).unwrap();
        assert_eq!((summary.cpus, summary.out_of_sync), (2, 0));
        assert_eq!(kernel.sync.online(), 2);
        let counters = machine.counters(1);
        assert_eq!((counters.wrmsr, counters.rdmsr), (34, 34 + 1 + 33));
    });
    assert_eq!(machine.registers(1), firmware_map());
    machine.check().unwrap();
}

/// Interrupts are masked throughout, and given back.
fn masked(ops: Vec<Op>, interrupts: bool) -> Vec<Op> {
    if interrupts {
        [&[Op::Cli], &ops[..], &[Op::Sti]].concat()
    } else {
        ops
    }
}

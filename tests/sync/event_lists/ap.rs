//! What an AP does between its arrival and its outcome, through the public life cycle.

use crate::common::lists::{CD, CR4, disables, enables};
use crate::common::one_cpu::{another_map, rdmsrs, reads, wrmsrs};
use crate::common::{Kernel, SCOPES, policy, registers_only};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps};
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
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            for _ in 0..times {
                unsafe { kernel.sync.offline(1) }.unwrap();
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

/// What a CPU reads that arrives for the first time since its reset.
fn first_reads(of: &Snapshot) -> Vec<Op> {
    let cap = Op::Rdmsr(MsrAddr::MTRRCAP.0, of.cap.unwrap().raw());
    [&[cap], &reads(of)[..]].concat()
}

#[test]
fn an_ap_in_sync_reads_and_waits_for_nobody() {
    let map = firmware_map();
    let arrived = arrive(two_cores(), map, KERNEL, 1, false);
    let expected = [&first_reads(&map)[..], &[Op::ReadCr0(CR0_KERNEL)]].concat();
    assert_eq!(arrived.ops, expected);
    assert_eq!(rdmsrs(&arrived.ops), 34, "MTRRCAP on the first arrival");
    assert_eq!(arrived.outcome.path, Path::InSync);
    assert_eq!(arrived.counters.pause, 0, "waits for nobody");
    assert_eq!(arrived.counters.locked, 0, "and locks nothing");
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
            let on = [Op::ReadCr0(found), Op::ReadCr0(found), Op::Cr0(CR0_KERNEL)];
            let expected = [&first_reads(&map)[..], &on].concat();
            let expected = masked(expected, interrupts);
            assert_eq!(arrived.ops, expected, "in sync but for CD and NW");
            assert_eq!(arrived.outcome.path, Path::CachingOn);
            assert!(arrived.outcome.changes.is_empty(), "as every AP comes");

            let arrived = arrive(config, another_map(), RESET, 1, interrupts);
            assert_eq!(arrived.outcome.path, Path::Window);
            assert_eq!(wrmsrs(&arrived.ops), 34);
            let every = Changes::FIXED | Changes::VARIABLE | Changes::DEFAULT | Changes::PAT;
            assert_eq!(arrived.outcome.changes, every);
            let cr0 = |op: &&Op| matches!(op, Op::Cr0(_));
            let cr0: Vec<Op> = arrived.ops.iter().filter(cr0).copied().collect();
            assert_eq!(cr0, [Op::Cr0(CR0_KERNEL | CR0_CD), Op::Cr0(CR0_KERNEL)]);
            assert!(!arrived.ops.contains(&Op::Wbinvd), "it has cached nothing");
            assert_eq!(arrived.machine.registers(1), map);
        }
    }
}

/// After S3, E is clear: compared once before the window and once after it; nothing was cached.
#[test]
fn an_ap_whose_mtrrs_are_off_is_compared_before_its_window_and_after_it() {
    let map = firmware_map();
    let mut asleep = map;
    asleep.def_type = asleep.def_type.disabled();
    let arrived = arrive(two_cores(), asleep, KERNEL, 1, false);
    let cr0 = [Op::ReadCr0(CR0_KERNEL)];
    let window = [
        &cr0[..],
        &[Op::Cr0(CD), Op::ReadCr4(CR4), Op::Cr4(CR4 & !CR4_PGE)],
        &disables(asleep.def_type)[..2],
        &enables(map.def_type),
        &[Op::Cr0(CR0_KERNEL), Op::Cr4(CR4)],
    ]
    .concat();
    let expected = [&first_reads(&asleep), &cr0[..], &window, &reads(&map), &cr0].concat();
    assert_eq!(arrived.ops, expected);
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
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) }.unwrap();
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
        // Compared, each write read back, compared.
        assert_eq!((counters.wrmsr, counters.rdmsr), (34, 34 + 34 + 33));
    });
    assert_eq!(machine.registers(1), firmware_map());
    machine.check().unwrap();
}

/// With CD left set its core would be uncached through the whole bring-up.
#[test]
fn deferred_check_in_turns_caching_on_and_does_nothing_else() {
    for (cr0, writes) in [(KERNEL, 0), (RESET, 1)] {
        let mut config = Config::new(2, 1);
        config.aps = another_map();
        config.ap_cr0 = cr0;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(Resync::Deferred));
            kernel.bring_up(boot, &[1]);
            let counters = machine.counters(1);
            assert_eq!((counters.rdmsr, counters.wrmsr), (0, 0));
            assert_eq!(counters.cr0_writes, writes);
            assert_eq!(counters.wbinvd, 0);
            let had = crate::common::outcome(&kernel, 1);
            assert_eq!((had.path, had.changes), (Path::CheckedIn, Changes::empty()));
            assert_eq!(machine.control_registers(1).0, CR0_KERNEL);
        });
        assert_eq!(machine.registers(1), another_map());
        machine.check().unwrap();
    }
}

/// Interrupts are masked throughout, and given back.
fn masked(ops: Vec<Op>, interrupts: bool) -> Vec<Op> {
    if interrupts {
        [&[Op::Cli], &ops[..], &[Op::Sti]].concat()
    } else {
        ops
    }
}

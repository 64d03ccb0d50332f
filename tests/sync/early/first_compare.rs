//! An arriving CPU's first look at the target: what moves, faults or asks meanwhile.

use crate::common::{BOUNDS, Kernel, SCOPES, assert_all_equal, assert_caching_on, outcome, policy};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::delta::Changes;
use mtrr_pat::error::Error;
use mtrr_pat::policy::{AmdFixed, Policy, Resync};
use mtrr_pat::regs::{MsrAddr, SysCfg};
use mtrr_pat::rendezvous::CpuState;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, What};
use mtrr_pat::snapshot::Snapshot;
use std::collections::BTreeSet;

/// With one range more.
fn new_map() -> Snapshot {
    let mut new = Config::new(1, 1).boot;
    new.variable[7].base = 0x6_0000_0006;
    new.variable[7].mask = 0x7f_f000_0800;
    new
}

/// A suspend that is taken back finds the boot CPU changed, at any moment of an AP's arrival: while
/// the AP compares itself the target is not replaced, and afterwards nobody but the boot CPU is in
/// line with the new one.
#[test]
fn the_target_is_not_replaced_while_an_ap_compares_itself() {
    let mut seen = BTreeSet::new();
    for aps in [Config::new(1, 1).boot, new_map()] {
        for n in 0..100 {
            let mut config = Config::new(2, 1);
            config.aps = aps;
            let arrives = Fault::new(1, At::Start, What::Delay(100_000_000));
            config.faults.push(arrives);
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                kernel.init(boot, policy(Resync::Early));
                kernel.start(boot, 1).unwrap();
                machine.set_registers(0, &new_map());
                let since = boot.rdtsc();
                while boot.rdtsc() < since + 90_000 + 4_500 * n {
                    boot.work(7);
                }
                let starting = kernel.sync.state(1) == Ok(CpuState::Starting);
                match kernel.sync.suspend(boot, 0) {
                    Ok(saved) => {
                        // It may have come up since it was asked for.
                        assert_ne!(kernel.sync.state(1), Ok(CpuState::Starting));
                        assert_eq!(saved.epoch, 2);
                        kernel.sync.suspend_aborted().unwrap();
                    }
                    Err(error) => {
                        assert_eq!((starting, error), (true, Error::Busy));
                        machine.set_registers(0, &Config::new(1, 1).boot);
                    }
                }
                assert!(kernel.wait_for(boot, 1));
                let (epoch, want) = kernel.sync.target().unwrap();
                let in_line = if epoch == 1 { 2 } else { 1 };
                assert_eq!(kernel.sync.online(), in_line, "step {n}");
                let had = outcome(&kernel, 1);
                seen.insert((aps == new_map(), epoch, had.path.name()));
                let summary = kernel.resync(boot).unwrap();
                assert_eq!((summary.cpus, summary.out_of_sync), (2, 0));
                assert_eq!(kernel.sync.online(), 2);
                for cpu in [0, 1] {
                    let pairs = machine.registers(cpu).variable;
                    assert_eq!(pairs, want.variable, "step {n}: {had}");
                }
            });
            machine.check().unwrap();
        }
    }
    // Before the AP was there, and after.
    for (new, path) in [(false, "in_sync"), (true, "window")] {
        for epoch in [1, 2] {
            assert!(seen.contains(&(new, epoch, path)), "{seen:?}");
        }
    }
}

#[test]
fn a_register_that_faults_is_told_and_caching_is_on() {
    for msr in [
        MsrAddr::MTRRCAP,
        MsrAddr::MTRR_DEF_TYPE,
        MsrAddr::PAT,
        MsrAddr::SYSCFG,
        MsrAddr::TOP_MEM2,
        MsrAddr(0x26f),
        MsrAddr(0x213),
    ] {
        for amd_fixed in [AmdFixed::AsFound, AmdFixed::SaveDramBits] {
            let mut config = Config::amd(2, 1);
            config.ap_cr0 = 0x6000_0010;
            config.faults.push(Fault::new(1, At::Msr(msr), What::Gp));
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                let policy = Policy {
                    amd_fixed,
                    ..policy(Resync::Early)
                };
                kernel.init(boot, policy);
                kernel.bring_up(boot, &[1]);
                let had = outcome(&kernel, 1);
                assert_eq!(had.path, Path::Failed);
                assert_eq!(had.error, Some(Error::ReadFault { msr }));
                assert_eq!(kernel.sync.online(), 1);
            });
            assert_caching_on(&machine, 1, "failed");
            machine.check().unwrap();
        }
    }
}

/// Bits 23 to 18 and 26 route DRAM; a CPU that differs in another is in line after one look.
#[test]
fn the_bits_of_syscfg_that_route() {
    let reserved = |bit: &u32| *bit == 23;
    for bit in (0..64).filter(|bit| !reserved(bit)) {
        let mut config = Config::amd(2, 1);
        let turned = |syscfg: SysCfg| SysCfg::from_raw(syscfg.raw() ^ 1 << bit);
        config.aps.syscfg = config.aps.syscfg.map(turned);
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.bring_up(boot, &[1]);
        });
        let routes = (18..=23).contains(&bit) || bit == 26;
        let found = outcome(&kernel, 1).changes.contains(Changes::ROUTING);
        assert_eq!(found, routes, "bit {bit}");
        if !routes {
            assert_eq!(machine.counters(1).rdmsr, 36, "bit {bit}");
        }
        machine.check().unwrap();
    }
}

/// CPU 3 holds the target and takes no interrupt for long after it came online: its sibling, which
/// asked before it came, is answered before it looks.
#[test]
fn who_holds_the_target_answers_first() {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Thread;
    let late = Fault::new(3, At::Start, What::Delay(1_000_000_000));
    config.faults.push(late);
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.start(boot, 2).unwrap();
            kernel.start(boot, 3).unwrap();
            assert!(kernel.wait_for(boot, 2) && kernel.wait_for(boot, 3));
        },
        |ap| {
            let (me, ipis) = (ap.number(), ap.ipis());
            if me == 2 {
                machine.set_registers(2, &new_map());
            }
            let _ = kernel.sync.ap_online(ap, me, |n| ipis.send(n)).unwrap();
            if me == 3 {
                let since = ap.rdtsc();
                while ap.rdtsc() < since + 2 * crate::common::ticks(BOUNDS.hold) {
                    ap.work(10_000);
                }
            }
            kernel.signal(me);
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| kernel.interrupt(cpu),
    );
    assert_eq!(outcome(&kernel, 3).path, Path::InSync);
    // Its translations were dropped when it was let go, before it looked.
    let three = kernel.sync.report().cpus().find(|line| line.cpu == 3);
    assert_eq!(three.unwrap().holds, 1, "for its sibling's window");
    assert!(machine.stale_entries(3).is_empty());
    assert_eq!(outcome(&kernel, 2).path, Path::Window);
    assert_all_equal(&machine, "answered");
    machine.check().unwrap();
}

/// CPU 2 got its sibling's word and is stuck: the sibling waits for it once, and does not look at
/// registers that may change under it at any moment.
#[test]
fn behind_a_sibling_stuck_in_its_window_nothing_is_decided() {
    for (at, what) in [
        (At::InWindow(3), What::Stuck),
        // It comes back, and opens its window when its sibling stands still no more.
        (At::WindowEntry(1), What::Delay(55_000_000_000)),
    ] {
        for scope in SCOPES {
            for differs in [false, true] {
                let mut config = Config::new(2, 2);
                config.scope = scope;
                config.aps = new_map();
                config.faults.push(Fault::new(2, at, what.clone()));
                let late = Fault::new(3, At::Start, What::Delay(200_000_000));
                config.faults.push(late);
                let machine = Machine::new(config);
                let mut kernel = Kernel::new();
                kernel.patience = 4 * crate::common::ticks(BOUNDS.finish);
                machine.run(
                    |boot| {
                        kernel.init(boot, policy(Resync::Early));
                        kernel.start(boot, 2).unwrap();
                        kernel.start(boot, 3).unwrap();
                        let since = boot.rdtsc();
                        assert!(kernel.wait_for(boot, 3));
                        let took = boot.rdtsc() - since;
                        assert!(
                            took < 2 * crate::common::ticks(BOUNDS.finish),
                            "{took} ticks"
                        );
                    },
                    |ap| {
                        if ap.number() == 3 && !differs {
                            machine.set_registers(3, &Config::new(1, 1).boot);
                        }
                        kernel.ap(ap);
                    },
                    |cpu| kernel.interrupt(cpu),
                );
                let had = outcome(&kernel, 3);
                let stuck = Some(Error::SiblingStuck { cpu: 2 });
                assert_eq!((had.path, had.error), (Path::Postponed, stuck));
                assert_eq!(machine.counters(3).rdmsr, 0, "{at:?} {scope:?}");
            }
        }
    }
}

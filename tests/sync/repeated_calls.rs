//! CPUs that are told or asked something twice, late or wrongly: what a first reading of the life cycle
//! would miss.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, assert_all_equal, outcome, policy, with_pat};
use mtrr_pat::compare::SameMap;
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrCap, VariableMtrr};
use mtrr_pat::sim::{At, CR0_RESET, Config, Fault, Machine, MtrrScope, What};
use mtrr_pat::topology::Place;

fn differing(cores: usize, threads: usize, scope: MtrrScope) -> Config {
    let mut config = Config::new(cores, threads);
    config.scope = scope;
    config.aps = another_map();
    config
}

#[test]
fn places_of_two_kinds_are_not_compared() {
    // The AP is the boot CPU's sibling, whatever number the kernel gives its core.
    let machine = Machine::new(differing(1, 2, MtrrScope::Thread));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        let place = Place::Core { core: 7, thread: 1 };
        kernel.start_at(boot, 1, place).unwrap();
        boot.work(200_000);
        kernel.wait_for(boot, 1);
        assert_eq!(outcome(&kernel, 1).error, Some(Error::TopologyUnknown));
    });
    machine.check().unwrap();
}

#[test]
fn a_cpu_of_another_kind_is_so_every_time() {
    for scope in SCOPES {
        for mode in MODES {
            for vcnt in [0, 8, 12, 41, 255] {
                let mut config = differing(2, 1, scope);
                config.vcnt = vec![(1, vcnt)];
                config.aps.variable[11] = VariableMtrr {
                    base: 0x4000_0000,
                    mask: 0x7f_c000_0800,
                };
                let machine = Machine::new(config);
                let kernel = Kernel::new();
                kernel.run(&machine, |boot| {
                    let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) };
                    assert_eq!(booted.unwrap().error, None);
                    kernel.bring_up(boot, &[1]);
                    // More pairs than exist, or fewer than are in use.
                    let fits = (8..=40).contains(&vcnt);
                    for _ in 0..3 {
                        let off = kernel.resync(boot).unwrap().out_of_sync;
                        assert_eq!(off, u32::from(!fits), "VCNT {vcnt}");
                        let error = outcome(&kernel, 1).error;
                        let differs = matches!(error, Some(Error::CapDiffers { .. }));
                        assert_eq!((differs, error.is_none()), (!fits, fits), "{error:?}");
                    }
                    if fits {
                        let (have, want) = (machine.registers(1), machine.registers(0));
                        assert_eq!(have.same_map(&want), SameMap::Same);
                        let mut extra = have.variable_ranges().iter().skip(10);
                        assert!(extra.all(|pair| *pair == VariableMtrr::default()));
                    }
                });
            }
        }
    }
}

#[test]
fn a_cpu_that_is_starting_is_not_declared_again() {
    let machine = Machine::new(differing(2, 1, MtrrScope::Core));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        unsafe { kernel.sync.starting(boot, 1, Place::Apic(2)) }.unwrap();
        let again = unsafe { kernel.sync.starting(boot, 1, Place::Apic(2)) };
        assert_eq!(again, Err(Error::AlreadyDeclared { cpu: 1 }));
        unsafe { kernel.sync.offline(1) }.unwrap();
        kernel.bring_up(boot, &[1]);
        assert_all_equal(&machine, "declared anew");
    });
}

#[test]
fn an_ap_that_arrives_during_a_check_is_brought_in_line_all_the_same() {
    for mode in MODES {
        let mut config = differing(2, 1, MtrrScope::Core);
        config.ap_cr0 = CR0_RESET;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) };
            assert_eq!(booted.unwrap().error, None);
            kernel.start(boot, 1).unwrap();
            let ipis = boot.ipis();
            let checked = kernel.sync.check(boot, 0, |cpu| ipis.send(cpu)).unwrap();
            assert_eq!(checked.cpus, 2);
            kernel.wait_for(boot, 1);
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
            assert_eq!(kernel.sync.online(), 2, "{mode:?}");
            assert_all_equal(&machine, "checked while it came up");
        });
    }
}

#[test]
fn a_target_moved_by_a_suspend_that_did_not_happen_reaches_everybody() {
    let machine = Machine::new(Config::new(2, 1));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        kernel.bring_up(boot, &[1]);
        unsafe { boot.wrmsr(MsrAddr::PAT, Pat::LINUX.raw()) }.unwrap();
        kernel.sync.suspend(boot, 0).unwrap();
        let early = unsafe { kernel.sync.starting(boot, 1, Place::Apic(2)) };
        assert_eq!(early, Err(Error::Suspended));
        kernel.sync.suspend_aborted().unwrap();
        let off = kernel.sync.report().out_of_sync().map(|line| line.cpu);
        assert_eq!(
            off.collect::<Vec<_>>(),
            [1],
            "it holds the target of before"
        );
        assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
        assert_all_equal(&machine, "moved by suspend");
    });
}

#[test]
fn a_boot_cpu_that_is_torn_is_nobodys_model() {
    let mut config = Config::new(2, 1);
    config.faults = [5, 7]
        .map(|k| Fault::new(0, At::Wrmsr(k), What::Gp))
        .to_vec();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        kernel.bring_up(boot, &[1]);
        let ipis = boot.ipis();
        let want = another_map();
        let changed = unsafe { kernel.sync.change(boot, 0, &want, |cpu| ipis.send(cpu)) };
        assert_eq!(changed.unwrap().out_of_sync, 1, "the boot CPU");
        kernel.sync.suspend(boot, 0).unwrap();
        let (_, target) = kernel.sync.target().unwrap();
        assert_eq!(target.def_type, want.def_type);
    });
}

#[test]
fn targets_the_machine_refuses_are_refused_before_any_cpu_is_touched() {
    let mut config = Config::new(2, 1);
    let cap = config.boot.cap.unwrap();
    config.boot.cap = Some(cap - MtrrCap::FIX - MtrrCap::WC);
    config.aps.cap = config.boot.cap;
    config.boot.fixed = [0; 11];
    config.aps.fixed = [0; 11];
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let reserved = with_pat(policy(Resync::Early), Pat::from_raw(0x0203_0607_0101_0606));
        let refused = unsafe { kernel.sync.boot_init(boot, 0, reserved) };
        assert_eq!(refused, Err(Error::InvalidTarget { msr: MsrAddr::PAT }));
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        kernel.bring_up(boot, &[1]);
        let (epoch, now) = kernel.sync.target().unwrap();
        let mut fixed = now;
        fixed.fixed[0] = 0x0606_0606_0606_0606;
        let mut combining = now;
        combining.variable[7] = VariableMtrr {
            base: 0xd000_0001,
            mask: 0x7f_f000_0800,
        };
        for (target, msr) in [(fixed, MsrAddr(0x250)), (combining, MsrAddr::phys_base(7))] {
            let ipis = boot.ipis();
            let changed = unsafe { kernel.sync.change(boot, 0, &target, |cpu| ipis.send(cpu)) };
            assert_eq!(changed, Err(Error::InvalidTarget { msr }));
        }
        assert_eq!(kernel.sync.target().unwrap(), (epoch, now));
    });
}

#[test]
fn an_unknown_cpu_that_is_gone_is_nobodys_sibling() {
    let machine = Machine::new(differing(3, 1, MtrrScope::Core));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        assert_eq!(booted.unwrap().error, None);
        kernel.start_at(boot, 1, Place::Unknown).unwrap();
        kernel.wait_for(boot, 1);
        assert_eq!(outcome(&kernel, 1).error, Some(Error::TopologyUnknown));
        unsafe { kernel.sync.offline(1) }.unwrap();
        kernel.bring_up(boot, &[2]);
        assert_eq!(outcome(&kernel, 2).error, None);
    });
}

/// The target a run-time change brings: one more range.
fn one_range_more(mut want: mtrr_pat::snapshot::Snapshot) -> mtrr_pat::snapshot::Snapshot {
    want.variable[9] = VariableMtrr {
        base: 0x4000_0000,
        mask: 0x7f_c000_0800,
    };
    want
}

#[test]
fn a_kick_while_an_ap_comes_online_changes_nothing_under_it() {
    for delay in (0..60).map(|n| n * 500) {
        let machine = Machine::new(differing(2, 1, MtrrScope::Core));
        let kernel = Kernel::new();
        machine.run(
            |boot| {
                let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
                assert_eq!(booted.unwrap().error, None);
                kernel.start(boot, 1).unwrap();
                let since = boot.rdtsc();
                while boot.rdtsc() < since + delay {
                    boot.work(100);
                }
                let want = one_range_more(kernel.sync.target().unwrap().1);
                let ipis = boot.ipis();
                let changed = unsafe { kernel.sync.change(boot, 0, &want, |cpu| ipis.send(cpu)) };
                assert_eq!(changed.unwrap().out_of_sync, 0, "{delay}");
                kernel.wait_for(boot, 1);
            },
            |ap| {
                ap.sti();
                kernel.ap(ap);
            },
            |cpu| kernel.interrupt(cpu),
        );
        assert_all_equal(&machine, "changed while it came up");
        machine.check().unwrap();
    }
}

#[test]
fn an_ap_left_behind_while_it_comes_online_is_brought_in_line_by_the_next_rendezvous() {
    for delay in (0..80).map(|n| n * 500) {
        // CPU 2 sticks in the window of the change; its sibling comes up meanwhile.
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Thread;
        config.faults = vec![Fault::new(2, At::InWindow(3), What::Stuck)];
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
            assert_eq!(booted.unwrap().error, None);
            kernel.bring_up(boot, &[2]);
            kernel.start(boot, 3).unwrap();
            let since = boot.rdtsc();
            while boot.rdtsc() < since + delay {
                boot.work(100);
            }
            let want = one_range_more(kernel.sync.target().unwrap().1);
            let ipis = boot.ipis();
            let changed = unsafe { kernel.sync.change(boot, 0, &want, |cpu| ipis.send(cpu)) };
            assert_eq!(changed, Err(Error::Stuck { count: 1, first: 2 }), "{delay}");
            kernel.wait_for(boot, 3);
            unsafe { kernel.sync.offline(2) }.unwrap();
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0, "{delay}");
            let held = machine.registers(3);
            assert_eq!(held.variable_ranges(), want.variable_ranges(), "{delay}");
        });
    }
}

//! Who came to a rendezvous and did not finish, and who was left behind there: shown as such, and
//! nobody else.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, Schedule, What};
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::Place;

/// The report a kernel prints when `resync` failed because CPU 2 did not come.
fn after_a_missing(schedule: Schedule, threads: usize, mode: Resync) -> Vec<usize> {
    let mut config = Config::new(8 / threads, threads);
    config.schedule = schedule;
    config.aps = another_map();
    config.log = false;
    config.faults = vec![Fault::new(2, At::Start, What::Stuck)];
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(mode));
        for ap in 1..8 {
            kernel.start(boot, ap).unwrap();
            kernel.wait_for(boot, ap);
        }
        let missing = Error::Missing { count: 1, first: 2 };
        assert_eq!(kernel.resync(boot), Err(missing));
        unfinished(&kernel)
    })
}

fn unfinished(kernel: &Kernel) -> Vec<usize> {
    let lines = kernel.sync.report().cpus();
    lines
        .filter(|line| line.unfinished)
        .map(|line| line.cpu)
        .collect()
}

/// Registers per thread; CPU 2 gets stuck in its first window.
fn with_cpu_2_stuck() -> Config {
    let mut config = Config::new(3, 2);
    config.scope = MtrrScope::Thread;
    let stuck = Fault::new(2, At::InWindow(5), What::Stuck);
    config.faults.push(stuck);
    config
}

#[test]
fn nobody_healthy_is_unfinished_after_an_aborted_rendezvous_baton() {
    let mut bad = Vec::new();
    for threads in [1, 2] {
        for mode in MODES {
            for seed in 0..40 {
                let off = after_a_missing(Schedule::Baton { seed }, threads, mode);
                if !off.is_empty() {
                    bad.push((threads, mode, seed, off));
                }
            }
        }
    }
    assert!(
        bad.is_empty(),
        "{} of 160: {:?}",
        bad.len(),
        &bad[..bad.len().min(5)]
    );
}

#[test]
fn nobody_healthy_is_unfinished_after_an_aborted_rendezvous_free() {
    let mut bad = Vec::new();
    for threads in [1, 2] {
        for seed in 0..20 {
            let off = after_a_missing(Schedule::Free { seed }, threads, Resync::Early);
            if !off.is_empty() {
                bad.push((threads, seed, off));
            }
        }
    }
    assert!(
        bad.is_empty(),
        "{} of 40: {:?}",
        bad.len(),
        &bad[..bad.len().min(5)]
    );
}

/// The boot CPU is number 1 and its sibling, number 0, is stuck in a change: the boot CPU's turn
/// does not come, and the report says that it is not in line with the new map.
#[test]
fn a_leader_whose_turn_did_not_come_is_not_in_sync() {
    for scope in SCOPES {
        let mut config = Config::new(2, 2);
        config.scope = scope;
        config
            .faults
            .push(Fault::new(1, At::InWindow(5), What::Stuck));
        let machine = Machine::new(config);
        let sync = CacheSync::<8>::new();
        let up = Word::new(0);
        machine.run(
            |boot| {
                let _ = unsafe { sync.boot_init(boot, 1, policy(Resync::Early)) }.unwrap();
                for ap in 1..4 {
                    let place = Place::Apic(machine.config().apic_id(ap));
                    unsafe { sync.starting(boot, ap ^ 1, place) }.unwrap();
                    boot.send_init_sipi(ap);
                    while up.load(Ordering::Acquire) < ap as u32 {
                        let _ = sync.hold_point(boot, 1);
                        let now = boot.rdtsc();
                        boot.pause_while(&up, ap as u32 - 1, now + 20_000);
                    }
                }
                let ipis = boot.ipis();
                let old = machine.registers(0);
                let led = unsafe { sync.change(boot, 1, &another_map(), |cpu| ipis.send(cpu ^ 1)) };
                assert_eq!(led, Err(Error::Stuck { count: 2, first: 0 }));
                let report = sync.report();
                let line = report.cpus().find(|line| line.cpu == 1).unwrap();
                let here = machine.registers(0);
                if scope == MtrrScope::Thread {
                    assert_eq!(here.def_type, old.def_type);
                    assert_eq!(here.variable, old.variable, "it holds the old map");
                }
                assert!(!line.in_sync(), "{scope:?}: {line:?}\n{report}");
            },
            |ap| {
                let me = ap.number();
                let ipis = ap.ipis();
                let _ = sync
                    .ap_online(ap, me ^ 1, |cpu| ipis.send(cpu ^ 1))
                    .unwrap();
                up.store(me as u32, Ordering::Release);
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| {
                let me = cpu.number() ^ 1;
                let _ = sync.hold_point(cpu, me);
                let _ = sync.attend(cpu, me);
            },
        );
    }
}

/// Over S3, or offline and online again, one that was stuck is so no more.
#[test]
fn one_that_was_stuck_starts_a_new_life() {
    for s3 in [false, true] {
        for parked in [false, true] {
            let machine = Machine::new(with_cpu_2_stuck());
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                kernel.init(boot, policy(Resync::Early));
                kernel.bring_up(boot, &[1, 2, 3, 4, 5]);
                let led = kernel.change(boot, &another_map());
                assert_eq!(led, Err(Error::Stuck { count: 1, first: 2 }));
                let stuck = || unfinished(&kernel);
                assert_eq!(stuck(), [2]);
                if s3 {
                    kernel.sync.suspend(boot, 0).unwrap();
                    assert_eq!(stuck(), [2]);
                    kernel.sync.suspend_aborted().unwrap();
                }
                if parked {
                    unsafe { kernel.sync.parked(2) }.unwrap();
                } else {
                    unsafe { kernel.sync.offline(2) }.unwrap();
                }
                assert!(stuck().is_empty());
                let _ = kernel.resync(boot).unwrap();
                assert_eq!(kernel.sync.online(), 5);
            });
        }
    }
}

/// Who was left behind in a change is not among those in line with the new target.
#[test]
fn who_was_left_behind_in_a_change_is_not_counted_online() {
    let machine = Machine::new(with_cpu_2_stuck());
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        kernel.bring_up(boot, &[1, 2, 3, 4, 5]);
        assert_eq!(kernel.sync.online(), 6);
        let led = kernel.change(boot, &another_map());
        assert_eq!(led, Err(Error::Stuck { count: 1, first: 2 }));
        let report = kernel.sync.report();
        let well = report.cpus().filter(|line| line.in_sync()).count();
        assert_eq!(well, 4, "{report}");
        // The stuck CPU and CPU 3 are not known to hold the new map.
        assert_eq!(kernel.sync.online(), 4, "{report}");
    });
}

/// A CPU that leaves an aborted rendezvous late disturbs none that follows, whenever it is kept away;
/// and nobody healthy stays unfinished.
#[test]
fn a_cpu_that_leaves_late_disturbs_no_later_rendezvous() {
    for threads in [1, 2] {
        for mode in MODES {
            for away in [5_000_000_000, 25_000_000_000, 90_000_000_000] {
                for op in (1..260).step_by(7) {
                    let mut config = Config::new(4 / threads, threads);
                    config.scope = MtrrScope::Thread;
                    config.aps = another_map();
                    config.log = false;
                    config.faults = vec![
                        Fault::new(2, At::Start, What::Stuck),
                        Fault::new(1, At::Op(op), What::Delay(away)),
                    ];
                    let machine = Machine::new(config);
                    let kernel = Kernel::new();
                    let why = format!("{threads} {mode:?} {away} op {op}");
                    kernel.run(&machine, |boot| {
                        kernel.init(boot, policy(mode));
                        for ap in [1, 2, 3] {
                            kernel.start(boot, ap).unwrap();
                            kernel.wait_for(boot, ap);
                        }
                        let led = kernel.resync(boot);
                        assert!(matches!(led, Err(Error::Missing { .. })), "{why}: {led:?}");
                        unsafe { kernel.sync.offline(2) }.unwrap();
                        let mut led = kernel.resync(boot);
                        for _ in 0..8 {
                            if led.is_ok_and(|s| s.out_of_sync == 0) {
                                break;
                            }
                            led = kernel.resync(boot);
                        }
                        let summary = led.unwrap_or_else(|e| panic!("{why}: {e:?}"));
                        assert_eq!((summary.cpus, summary.out_of_sync), (3, 0), "{why}");
                        assert_eq!(kernel.sync.online(), 3, "{why}");
                        boot.work(1_000_000_000);
                        assert!(kernel.sync.report().cpus().all(|l| !l.unfinished), "{why}");
                        kernel.sleep(
                            boot,
                            &mtrr_pat::sim::S3::all(mtrr_pat::sim::Scribble::LikeBoot),
                        );
                        assert!(kernel.sync.report().cpus().all(|l| !l.unfinished), "{why}");
                    });
                }
            }
        }
    }
}

/// A boot CPU with another number than 0 lives the whole life.
#[test]
fn a_boot_cpu_of_another_number_leads_sleeps_and_stays() {
    for mode in MODES {
        for boot_number in [1usize, 3, 7] {
            let number = |cpu: usize| cpu ^ boot_number;
            let mut config = Config::new(2, 2);
            config.aps = another_map();
            let machine = Machine::new(config);
            let sync = CacheSync::<8>::new();
            let up = Word::new(0);
            machine.run(
                |boot| {
                    let _ = unsafe { sync.boot_init(boot, boot_number, policy(mode)) }.unwrap();
                    for round in 0..2u32 {
                        for ap in 1..4 {
                            let place = Place::Apic(machine.config().apic_id(ap));
                            boot.cli();
                            unsafe { sync.starting(boot, number(ap), place) }.unwrap();
                            boot.send_init_sipi(ap);
                            boot.sti();
                            let before = round * 3 + ap as u32 - 1;
                            while up.load(Ordering::Acquire) <= before {
                                let _ = sync.hold_point(boot, boot_number);
                                let now = boot.rdtsc();
                                boot.pause_while(&up, before, now + 20_000);
                            }
                        }
                        let ipis = boot.ipis();
                        let led = sync.resync(boot, boot_number, |cpu| ipis.send(number(cpu)));
                        assert_eq!(led.unwrap().out_of_sync, 0);
                        let stays = Err(Error::IsBootCpu { cpu: boot_number });
                        assert_eq!(unsafe { sync.offline(boot_number) }, stays);
                        assert_eq!(unsafe { sync.parked(boot_number) }, stays);
                        let refused = sync.resync(boot, 0, |_| {});
                        let boot_is = Error::NotBootCpu {
                            cpu: 0,
                            boot: boot_number,
                        };
                        assert_eq!(refused, Err(boot_is));
                        if round == 0 {
                            boot.work(1_000_000);
                            let _ = sync.suspend(boot, boot_number).unwrap();
                            for ap in 1..4 {
                                unsafe { sync.offline(number(ap)) }.unwrap();
                            }
                            boot.s3(&mtrr_pat::sim::S3::all(mtrr_pat::sim::Scribble::LikeBoot));
                            let outcome = unsafe { sync.boot_resume(boot, boot_number) }.unwrap();
                            assert_eq!(outcome.error, None);
                            boot.sti();
                        }
                    }
                    assert_eq!(sync.online(), 4);
                },
                |ap| {
                    let me = number(ap.number());
                    let ipis = ap.ipis();
                    let _ = sync
                        .ap_online(ap, me, |cpu| ipis.send(number(cpu)))
                        .unwrap();
                    let seen = up.load(Ordering::Acquire);
                    up.store(seen + 1, Ordering::Release);
                    ap.sti();
                    while ap.halt_until_ipi() {}
                },
                |cpu| {
                    let me = number(cpu.number());
                    let _ = sync.hold_point(cpu, me);
                    let _ = sync.attend(cpu, me);
                },
            );
            machine.check().unwrap();
        }
    }
}

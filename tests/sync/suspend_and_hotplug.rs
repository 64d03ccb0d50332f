//! Suspends and resumes that go wrong, hot-plug, and CPUs that come while a rendezvous runs.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, aps, assert_all_equal, assert_cpu, outcome, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::delta::Changes;
use mtrr_pat::error::{Error, Left};
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, S3, Schedule, Scribble, SimCpu, Trampoline, What,
    firmware_map,
};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::topology::Place;

fn everywhere(mut test: impl FnMut(Resync, MtrrScope, &Machine, &Kernel)) {
    for mode in MODES {
        for scope in SCOPES {
            let mut config = Config::new(2, 2);
            config.scope = scope;
            let machine = Machine::new(config);
            test(mode, scope, &machine, &Kernel::new());
            machine
                .check()
                .unwrap_or_else(|broken| panic!("{mode:?} {scope:?}: {broken}"));
        }
    }
}

/// Brings all APs up and in line.
fn all_up(kernel: &Kernel, boot: &mut SimCpu<'_>, mode: Resync) {
    let aps = aps(&boot.machine());
    assert!(kernel.bring_up(boot, &aps).is_empty());
    if mode == Resync::Deferred {
        assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
    }
    assert_all_equal(&boot.machine(), "up");
    assert_eq!(kernel.sync.report().out_of_sync().count(), 0);
    assert_eq!(kernel.sync.online(), 4);
}

fn all_off(kernel: &Kernel) {
    for ap in 1..4 {
        unsafe { kernel.sync.offline(ap) }.unwrap();
    }
}

/// The boot CPU is what was saved, so it is in line, and a later change of it is saved as well.
#[test]
fn a_suspend_that_is_taken_back_leaves_the_boot_cpu_a_model() {
    everywhere(|mode, _, machine, kernel| {
        kernel.run(machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            let mut map = machine.registers(0);
            for (n, epoch) in [(3, 2), (4, 3)] {
                map.variable[n].base = 0x1234_5000;
                machine.set_registers(0, &map);
                let saved = kernel.sync.suspend(boot, 0).unwrap();
                assert_eq!((saved.changes, saved.epoch), (Changes::VARIABLE, epoch));
                kernel.sync.suspend_aborted().unwrap();
                assert_eq!(kernel.sync.online(), 1);
            }
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
            assert_eq!(kernel.sync.online(), 4);
            assert_all_equal(machine, "saved twice");
            assert_eq!(machine.registers(1).variable, map.variable);
        });
        machine.check().unwrap();
    });
}

#[test]
fn a_second_suspend_without_a_resume_saves_nothing_new() {
    everywhere(|mode, _, machine, kernel| {
        kernel.run(machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            let first = kernel.sync.suspend(boot, 0).unwrap();
            assert_eq!(first.changes, Changes::empty());
            all_off(kernel);
            boot.s3(&S3::all(Scribble::Zeroed));
            // The resume never came to `boot_resume`; the boot CPU is itself out of line.
            let second = kernel.sync.suspend(boot, 0).unwrap();
            assert!(second.changes.contains(Changes::FIXED | Changes::DEFAULT));
            assert_eq!(second.epoch, first.epoch);
            boot.s3(&S3::all(Scribble::Off));
            let outcome = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
            assert_eq!((outcome.path, outcome.error), (Path::Window, None));
            assert_eq!(machine.registers(0), firmware_map());
            all_up(kernel, boot, mode);
        });
    });
}

#[test]
fn what_the_kernel_wrote_behind_our_back_is_saved_by_a_suspend() {
    everywhere(|mode, _, machine, kernel| {
        kernel.run(machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            machine.set_registers(0, &another_map());
            let saved = kernel.sync.suspend(boot, 0).unwrap();
            assert!(saved.changes.contains(Changes::VARIABLE));
            let said = "target 2 saved, the boot CPU differed in fixed,variable,default,pat";
            assert_eq!(saved.to_string(), said);
            all_off(kernel);
            boot.s3(&S3::all(Scribble::Zeroed));
            let _ = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
            all_up(kernel, boot, mode);
            assert_eq!(machine.registers(3), another_map());
        });
    });
}

#[test]
fn an_aborted_suspend_leaves_everything_running() {
    everywhere(|mode, _, machine, kernel| {
        kernel.run(machine, |boot| {
            let not = Err(Error::NotSuspended);
            assert_eq!(kernel.sync.suspend_aborted(), not);
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            assert_eq!(kernel.sync.suspend_aborted(), not);
            kernel.sync.suspend(boot, 0).unwrap();
            assert_eq!(
                change(kernel, boot, &another_map()),
                Err(Error::Suspended),
                "not while suspended"
            );
            assert_all_equal(machine, "nothing was changed");
            kernel.sync.suspend_aborted().unwrap();
            assert_eq!(change(kernel, boot, &another_map()), Ok(()));
        });
        assert_all_equal(machine, "changed");
        assert_eq!(machine.registers(2), another_map());
    });
}

fn change(kernel: &Kernel, boot: &mut SimCpu<'_>, to: &Snapshot) -> Result<(), Error> {
    let ipis = boot.ipis();
    let changed = unsafe { kernel.sync.change(boot, 0, to, |cpu| ipis.send(cpu)) };
    changed.map(|_| ())
}

#[test]
fn a_resume_that_fails_keeps_the_saved_state_for_the_next_attempt() {
    for mode in MODES {
        for scope in SCOPES {
            let mut config = Config::new(2, 2);
            config.scope = scope;
            // The first two attempts after S3: a fault, and a fault whose rollback faults too.
            let gp = |k| Fault::new(0, At::Wrmsr(k), What::Gp).in_round(1);
            config.faults = vec![gp(3), gp(9), gp(11)];
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
                all_up(&kernel, boot, mode);
                kernel.sync.suspend(boot, 0).unwrap();
                all_off(&kernel);
                boot.s3(&S3::all(Scribble::custom(|_, map| *map = another_map())));
                let mut failures = 0;
                loop {
                    let outcome = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
                    let Some(error) = outcome.error else { break };
                    let Error::WriteFault { left, .. } = error else {
                        panic!("{error}");
                    };
                    assert_ne!(left, Left::Unchanged);
                    failures += 1;
                    assert!(failures < 4);
                }
                assert!(failures >= 1);
                assert_eq!(machine.registers(0), firmware_map());
                all_up(&kernel, boot, mode);
            });
            machine.check().unwrap();
        }
    }
}

#[test]
fn a_resume_given_up_half_way_and_slept_again_ends_in_line() {
    everywhere(|mode, _, machine, kernel| {
        kernel.run(machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            kernel.sleep(boot, &S3::all(Scribble::Zeroed));
            // Only some come up, one of them not yet synced (deferred), then the lid closes again.
            kernel.bring_up(boot, &[2, 1]);
            kernel.sleep(
                boot,
                &S3::all(Scribble::custom(|_, map| *map = another_map())),
            );
            assert_eq!(kernel.sync.online(), 1);
            all_up(kernel, boot, mode);
            assert_eq!(machine.registers(3), firmware_map());
        });
    });
}

#[test]
fn an_ap_can_go_and_come_again() {
    everywhere(|mode, scope, machine, kernel| {
        kernel.run(machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            all_up(kernel, boot, mode);
            for ap in [2, 3, 2] {
                unsafe { kernel.sync.offline(ap) }.unwrap();
                assert_eq!(kernel.sync.online(), 3);
                unsafe { kernel.sync.offline(ap) }.unwrap();
                assert_eq!(kernel.sync.online(), 3, "told twice, counted once");
                let mut changed = firmware_map();
                changed.pat = another_map().pat;
                if scope == MtrrScope::Thread {
                    changed = another_map();
                }
                machine.set_registers(ap, &changed);
                kernel.bring_up(boot, &[ap]);
                if mode == Resync::Deferred {
                    assert_eq!(outcome(kernel, ap).path, Path::CheckedIn);
                    assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
                }
                let expected = match scope {
                    MtrrScope::Thread => Path::Window,
                    MtrrScope::Core => Path::Pat,
                };
                assert_eq!(outcome(kernel, ap).path, expected, "{mode:?} {scope:?}");
                assert_eq!(kernel.sync.online(), 4);
                assert_all_equal(machine, "again");
            }
        });
    });
}

/// CPU 2 brings CPU 3 up by itself while the boot CPU changes the target: whichever is first.
#[test]
fn an_ap_that_comes_online_while_a_rendezvous_runs_gets_the_target_in_force() {
    for mode in MODES {
        for scope in SCOPES {
            for seed in 0..40 {
                online_during_change(mode, scope, seed);
            }
        }
    }
}

fn online_during_change(mode: Resync, scope: MtrrScope, seed: u64) {
    let mut config = Config::new(3, 2);
    config.scope = scope;
    config.schedule = Schedule::Baton { seed };
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let go = Word::new(0);
    let started = Word::new(0);
    let why = format!("{mode:?} {scope:?} seed {seed}");
    machine.run(
        |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            kernel.bring_up(boot, &[1, 2, 3]);
            let _ = kernel.resync(boot).unwrap();
            go.store(1, Ordering::Release);
            boot.send_ipi(2);
            boot.work(1 + seed * 10_000);
            // May find CPU 4 on its way: then it is waited for.
            assert_eq!(change(&kernel, boot, &another_map()), Ok(()), "{why}");
            while started.load(Ordering::Acquire) == 0 {
                let _ = kernel.sync.hold_point(boot, 0);
                let soon = boot.rdtsc() + 20_000;
                boot.pause_while(&started, 0, soon);
            }
            assert!(kernel.wait_for(boot, 4), "{why}");
            let _ = kernel.resync(boot).unwrap();
        },
        |ap| {
            let me = ap.number();
            ap.work(1000);
            let ipis = ap.ipis();
            let _ = kernel.sync.ap_online(ap, me, |cpu| ipis.send(cpu)).unwrap();
            kernel.signal(me);
            ap.sti();
            loop {
                let first = me == 2 && started.load(Ordering::Acquire) == 0;
                if first && go.load(Ordering::Acquire) == 1 {
                    let result = loop {
                        let result = kernel.start(ap, 4);
                        if result != Err(Error::Busy) {
                            break result;
                        }
                        ap.work(100);
                    };
                    assert_eq!(result, Ok(()), "{why}");
                    started.store(1, Ordering::Release);
                }
                if !ap.halt_until_ipi() {
                    return;
                }
            }
        },
        |cpu| kernel.interrupt(cpu),
    );
    for cpu in 0..5 {
        assert_cpu(&machine, cpu, &another_map(), &why);
    }
    assert_eq!(kernel.sync.online(), 5, "{why}");
    machine
        .check()
        .unwrap_or_else(|broken| panic!("{why}: {broken}"));
}

#[test]
fn while_one_rendezvous_is_led_another_is_busy() {
    for scope in SCOPES {
        let mut config = Config::new(2, 2);
        config.scope = scope;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let tried = Word::new(0);
        machine.run(
            |boot| {
                let place = Place::Core { core: 0, thread: 0 };
                let policy = policy(Resync::Early);
                let booted = unsafe { kernel.sync.boot_init_at(boot, 0, place, policy) };
                let _ = booted.unwrap();
                kernel.bring_up(boot, &[1, 2]);
                let summary = kernel.resync(boot).unwrap();
                assert_eq!((summary.cpus, summary.out_of_sync), (3, 0));
                assert_eq!(tried.load(Ordering::Acquire), 1);
            },
            |ap| {
                let me = ap.number();
                let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
                kernel.signal(me);
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| {
                let me = cpu.number();
                if me == 2 {
                    // The boot CPU waits for this one, which takes itself for the boot CPU: whose APIC id
                    // is not known here.
                    let busy = Err(Error::Busy);
                    assert_eq!(kernel.sync.resync(cpu, 0, |_| {}), busy);
                    assert_eq!(kernel.sync.check(cpu, 0, |_| {}), busy);
                    let target = another_map();
                    assert_eq!(unsafe { kernel.sync.change(cpu, 0, &target, |_| {}) }, busy);
                    assert_eq!(kernel.sync.suspend(cpu, 0).map(|_| ()), Err(Error::Busy));
                    tried.store(1, Ordering::Release);
                }
                kernel.interrupt(cpu);
            },
        );
        assert_all_equal(&machine, "busy");
        machine.check().unwrap();
    }
}

/// A CPU that comes back checks in, and is not online before the rendezvous, whatever it held before.
#[test]
fn a_cpu_that_comes_back_holds_nothing_until_it_is_compared() {
    let machine = Machine::new(Config::new(2, 1));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Deferred));
        assert!(kernel.bring_up(boot, &[1]).is_empty());
        assert_eq!(kernel.sync.online(), 1);
        let _ = kernel.resync(boot).unwrap();
        assert_eq!(kernel.sync.online(), 2);
        unsafe { kernel.sync.offline(1) }.unwrap();
        assert!(kernel.bring_up(boot, &[1]).is_empty());
        assert_eq!(kernel.sync.online(), 1);
        let _ = kernel.resync(boot).unwrap();
        assert_eq!(kernel.sync.online(), 2);
    });
}

/// CPU 2 runs a guest, which an interrupt ends; its sibling is plugged in beside it and differs. With
/// caching on in the trampoline the guest never runs while the core's caches are off.
#[test]
fn a_sibling_comes_up_beside_a_guest() {
    for scope in SCOPES {
        let mut config = Config::new(2, 2);
        config.scope = scope;
        config.aps = another_map();
        config.trampoline = Trampoline::EnablesCaching;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let done = Word::new(0);
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                assert!(kernel.bring_up(boot, &[2]).is_empty());
                machine.clear_log();
                assert!(kernel.bring_up(boot, &[3]).is_empty());
                done.store(1, Ordering::Release);
            },
            |ap| {
                if ap.number() != 2 {
                    return kernel.ap(ap);
                }
                let had = kernel.sync.ap_online(ap, 2, |_| {}).unwrap();
                assert_eq!(had.error, None);
                kernel.signal(2);
                ap.sti();
                while done.load(Ordering::Acquire) == 0 {
                    ap.work(500);
                }
            },
            |cpu| kernel.interrupt(cpu),
        );
        let three = outcome(&kernel, 3);
        assert_eq!(
            (three.path == Path::Window, three.error),
            (scope == MtrrScope::Thread, None)
        );
        let guest = machine.counters(2);
        assert!(guest.work > 0 && guest.uncached_work == 0, "{guest:?}");
        assert_eq!(guest.interrupts > 0, scope == MtrrScope::Thread);
        machine.check().unwrap();
    }
}

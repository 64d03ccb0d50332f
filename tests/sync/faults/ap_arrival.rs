//! APs that come late, twice, never, under a wrong number or undeclared.

use crate::common::one_cpu::another_map;
use crate::common::{
    CPUS, Kernel, MODES, SCOPES, aps, assert_all_equal, assert_cpu, outcome, policy,
};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, S3, Scribble, What, firmware_map};
use mtrr_pat::topology::Place;

fn everywhere(mut test: impl FnMut(Resync, MtrrScope)) {
    for mode in MODES {
        for scope in SCOPES {
            test(mode, scope);
        }
    }
}

fn machine(scope: MtrrScope, faults: Vec<Fault>) -> Machine {
    let mut config = Config::new(2, 2);
    config.scope = scope;
    config.aps = another_map();
    config.faults = faults;
    Machine::new(config)
}

#[test]
fn an_ap_that_never_arrives_is_missed_by_name_and_the_others_are_in_line_without_it() {
    everywhere(|mode, scope| {
        let never = Fault::new(2, At::Start, What::Stuck);
        let machine = machine(scope, vec![never]);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            // A kernel that does not notice: the rendezvous does.
            for ap in [1, 2, 3] {
                kernel.start(boot, ap).unwrap();
                kernel.wait_for(boot, ap);
            }
            let before: Vec<_> = (0..4).map(|cpu| machine.registers(cpu)).collect();
            let missing = Error::Missing { count: 1, first: 2 };
            assert_eq!(kernel.resync(boot), Err(missing));
            for (cpu, before) in before.iter().enumerate() {
                assert_eq!(machine.registers(cpu), *before, "nothing was changed");
            }
            assert!(kernel.sync.report().cpus().all(|line| !line.unfinished));
            // One that declares it gone goes on without it.
            unsafe { kernel.sync.offline(2) }.unwrap();
            let summary = kernel.resync(boot).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (3, 0));
        });
        for cpu in [0, 1, 3] {
            assert_cpu(&machine, cpu, &firmware_map(), "healthy");
        }
        machine.check().unwrap();
    });
}

#[test]
fn the_boot_cpu_leads_and_stays_and_nobody_else_does() {
    everywhere(|mode, scope| {
        let machine = machine(scope, Vec::new());
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let sync = &kernel.sync;
            assert_eq!(unsafe { sync.offline(1) }, Err(Error::NotInitialised));
            let _ = unsafe { sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            kernel.bring_up(boot, &[1, 2]);
            for cpu in [1, 3] {
                let refused = Err(Error::NotBootCpu { cpu, boot: 0 });
                assert_eq!(sync.resync(boot, cpu, |_| {}), refused);
                assert_eq!(sync.check(boot, cpu, |_| {}), refused);
                assert_eq!(
                    unsafe { sync.change(boot, cpu, &firmware_map(), |_| {}) },
                    refused
                );
            }
            let stays = Err(Error::IsBootCpu { cpu: 0 });
            assert_eq!(unsafe { sync.offline(0) }, stays);
            assert_eq!(unsafe { sync.parked(0) }, stays);
            let summary = kernel.resync(boot).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (3, 0));

            let _ = sync.suspend(boot, 0).unwrap();
            let refused = Err(Error::NotBootCpu { cpu: 1, boot: 0 });
            assert_eq!(unsafe { sync.boot_resume(boot, 1) }, refused);
            let resumed = unsafe { sync.boot_resume(boot, 0) }.unwrap();
            assert_eq!(resumed.error, None, "the saved state is still there");
            unsafe { sync.parked(1) }.unwrap();
            let report = sync.report().to_string();
            assert!(report.contains("\n  parked        1"), "{report}");
        });
        machine.check().unwrap();
    });
}

/// Who noticed too late that the machine slept says so then, or resumes at once: woken with its MTRRs
/// off, the boot CPU is no model.
#[test]
fn a_sleep_without_suspend_keeps_the_target() {
    everywhere(|mode, scope| {
        let machine = machine(scope, Vec::new());
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(mode));
            boot.s3(&S3::all(Scribble::Off));
            let resumed = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
            assert_eq!(resumed.error, None);
            assert_cpu(&machine, 0, &firmware_map(), "without suspend");
            boot.s3(&S3::all(Scribble::Off));
            let _ = kernel.sync.suspend(boot, 0).unwrap();
            let resumed = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
            assert_eq!(resumed.error, None);
        });
        assert_cpu(&machine, 0, &firmware_map(), "the boot CPU");
        machine.check().unwrap();
    });
}

#[test]
fn an_ap_that_arrives_late_is_waited_for() {
    everywhere(|mode, scope| {
        let late = Fault::new(2, At::Start, What::Delay(15_000_000_000));
        let machine = machine(scope, vec![late]);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            for ap in [1, 2, 3] {
                kernel.start(boot, ap).unwrap();
            }
            // Called while it is on its way: the gathering outlasts that.
            let summary = kernel.resync(boot).unwrap();
            assert_eq!(
                (summary.cpus, summary.out_of_sync),
                (4, 0),
                "{mode:?} {scope:?}"
            );
        });
        assert_all_equal(&machine, "late");
        machine.check().unwrap();
    });
}

#[test]
fn an_ap_that_arrives_twice_is_told_so_and_left_alone() {
    everywhere(|mode, scope| {
        let machine = machine(scope, Vec::new());
        let kernel = Kernel::new();
        let twice = Word::new(0);
        machine.run(
            |boot| {
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
                kernel.bring_up(boot, &[2]);
                assert_eq!(
                    kernel.start(boot, 2),
                    Err(Error::AlreadyDeclared { cpu: 2 })
                );
                while twice.load(Ordering::Acquire) == 0 {
                    boot.pause_while(&twice, 0, u64::MAX);
                }
                let _ = kernel.resync(boot).unwrap();
                assert_eq!(kernel.sync.online(), 2);
            },
            |ap| {
                let me = ap.number();
                if twice.load(Ordering::Acquire) == 0 {
                    let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
                    let writes = machine.counters(me).register_writes();
                    let again = kernel.sync.ap_online(ap, me, |_| {});
                    assert_eq!(again, Err(Error::ArrivedTwice { cpu: me }));
                    assert_eq!(machine.counters(me).register_writes(), writes);
                    kernel.signal(me);
                    twice.store(1, Ordering::Release);
                }
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| {
                let me = cpu.number();
                kernel.interrupt(cpu);
                let again = kernel.sync.attend(cpu, me);
                assert!(again.is_ok(), "the rendezvous is over by then: {again:?}");
            },
        );
        assert_cpu(&machine, 2, &firmware_map(), "twice");
        machine.check().unwrap();
    });
}

#[test]
fn a_number_out_of_range_or_undeclared_changes_nothing() {
    everywhere(|mode, scope| {
        let machine = machine(scope, Vec::new());
        let kernel = Kernel::new();
        let out = |cpu| Error::CpuOutOfRange { cpu, cpus: CPUS };
        machine.run(
            |boot| {
                let early = unsafe { kernel.sync.boot_init(boot, CPUS, policy(mode)) };
                assert_eq!(early, Err(out(CPUS)));
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
                let again = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) };
                assert_eq!(again, Err(Error::AlreadyInitialised));
                for number in [CPUS, CPUS + 1, usize::MAX] {
                    let starting = unsafe { kernel.sync.starting(boot, number, Place::Apic(9)) };
                    assert_eq!(starting, Err(out(number)));
                    assert_eq!(unsafe { kernel.sync.offline(number) }, Err(out(number)));
                    assert_eq!(unsafe { kernel.sync.parked(number) }, Err(out(number)));
                    assert_eq!(kernel.sync.hold_point(boot, number), Err(out(number)));
                    assert_eq!(kernel.sync.resync(boot, number, |_| {}), Err(out(number)));
                    assert_eq!(kernel.sync.check(boot, number, |_| {}), Err(out(number)));
                }
                kernel.bring_up(boot, &[2]);
            },
            |ap| {
                let before = machine.registers(2);
                for number in [CPUS, usize::MAX] {
                    let wrong = kernel.sync.ap_online(ap, number, |_| {});
                    assert_eq!(wrong, Err(out(number)));
                    assert_eq!(kernel.sync.attend(ap, number), Err(out(number)));
                }
                let wrong = kernel.sync.ap_online(ap, 3, |_| {});
                assert_eq!(wrong, Err(Error::NotDeclared { cpu: 3 }));
                let wrong = kernel.sync.ap_online(ap, 0, |_| {});
                let own = machine.config().apic_id(2);
                let differs = Error::ApicIdDiffers {
                    cpu: 0,
                    declared: 0,
                    own,
                };
                assert_eq!(wrong, Err(differs));
                assert_eq!(machine.registers(2), before);
                assert_eq!(machine.counters(2).register_writes(), 0);
                kernel.ap(ap);
            },
            |cpu| kernel.interrupt(cpu),
        );
        machine.check().unwrap();
    });
}

#[test]
fn an_ap_before_boot_init_is_told_so() {
    let machine = machine(MtrrScope::Core, Vec::new());
    let kernel = Kernel::new();
    machine.run(
        |boot| boot.send_init_sipi(2),
        |ap| {
            let early = kernel.sync.ap_online(ap, 2, |_| {});
            assert_eq!(early, Err(Error::NotInitialised));
            assert_eq!(kernel.sync.hold_point(ap, 2), Err(Error::NotInitialised));
        },
        |_| {},
    );
    assert_eq!(machine.counters(2).register_writes(), 0);
}

#[test]
fn a_failed_ap_is_brought_in_line_by_the_next_rendezvous() {
    everywhere(|mode, scope| {
        // Two faults: the rollback fails too, and the AP is left with its MTRRs off.
        let faults = [5, 7].map(|k| Fault::new(2, At::Wrmsr(k), What::Gp));
        let machine = machine(scope, faults.to_vec());
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            kernel.bring_up(boot, &[2]);
            if mode == Resync::Deferred {
                let summary = kernel.resync(boot).unwrap();
                assert_eq!((summary.cpus, summary.out_of_sync), (2, 1));
            }
            assert_eq!(outcome(&kernel, 2).path, Path::Failed);
            assert!(!machine.registers(2).def_type.enabled());
            assert_eq!(kernel.sync.online(), 1);
            let summary = kernel.resync(boot).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (2, 0));
            assert_eq!(kernel.sync.online(), 2);
        });
        assert_cpu(&machine, 2, &firmware_map(), "second try");
        assert!(aps(&machine).len() == 3);
        machine.check().unwrap();
    });
}

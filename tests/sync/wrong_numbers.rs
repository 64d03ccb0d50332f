//! What a kernel may pass wrongly: a place, a number, a CPU, a bound. Refused by name, or harmless.

use mtrr_pat::cpu::{CpuOps, CpuidWords};
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{Bounds, Policy, Resync};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, S3, Scribble, What, firmware_map};
use mtrr_pat::topology::Place;

use crate::common::{Kernel, SCOPES, assert_all_equal, assert_cpu, outcome, policy, with_pat};

/// The MADT's processor UID instead of the APIC id: CPUs 1 and 3 (cores 0 and 1) are declared as each
/// other. Neither is touched, none of their siblings opens a window beside them, and put right they
/// come up.
#[test]
fn a_wrong_place_is_found_by_the_cpu_itself() {
    for scope in SCOPES {
        let mut config = Config::new(2, 2);
        config.scope = scope;
        config.aps.def_type = mtrr_pat::regs::MtrrDefType::from_raw(0);
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let said = std::sync::Mutex::new(Vec::new());
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                let id = |n| machine.config().apic_id(n);
                kernel.start_at(boot, 1, Place::Apic(id(3))).unwrap();
                assert!(!kernel.wait_for(boot, 1), "it halts");
                assert_eq!(machine.counters(1).register_writes(), 0);
                // CPU 2 differs, and wants a window: refused, since CPU 1 may sit beside it.
                kernel.bring_up(boot, &[2]);
                let two = outcome(&kernel, 2);
                assert_eq!(two.path, Path::Postponed);
                assert_eq!(two.error, Some(Error::TopologyUnknown));
                unsafe { kernel.sync.offline(1) }.unwrap();
                kernel.start_at(boot, 1, Place::Apic(id(1))).unwrap();
                assert!(kernel.wait_for(boot, 1));
                kernel.bring_up(boot, &[3]);
                assert_eq!(outcome(&kernel, 3).error, None);
                kernel.resync(boot).unwrap().ok().unwrap();
            },
            |ap| {
                let (n, ipis) = (ap.number(), ap.ipis());
                match kernel.sync.ap_online(ap, n, |sibling| ipis.send(sibling)) {
                    Ok(_) => {
                        kernel.signal(n);
                        ap.sti();
                        while ap.halt_until_ipi() {}
                    }
                    Err(error) => said.lock().unwrap().push(error),
                }
            },
            |cpu| kernel.interrupt(cpu),
        );
        let differs = Error::ApicIdDiffers {
            cpu: 1,
            declared: machine.config().apic_id(3),
            own: machine.config().apic_id(1),
        };
        assert_eq!(*said.lock().unwrap(), [differs]);
        assert!(differs.to_string().contains("APIC id 0x3"), "{differs}");
        assert_all_equal(&machine, "put right");
        machine.check().unwrap();
    }
}

#[test]
fn an_apic_id_belongs_to_one_cpu_that_may_run() {
    let machine = Machine::new(Config::new(2, 2));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        let id = |n| boot.machine().config().apic_id(n);
        let (boot_id, first) = (id(0), id(1));
        let declare =
            |boot: &mut _, n, id| unsafe { kernel.sync.starting(boot, n, Place::Apic(id)) };
        let taken = |apic_id, by| Err(Error::ApicIdTaken { apic_id, by });
        assert_eq!(
            declare(boot, 2, boot_id),
            taken(boot_id, 0),
            "the boot CPU's"
        );
        kernel.bring_up(boot, &[1]);
        assert_eq!(declare(boot, 2, first), taken(first, 1), "twice");
        assert_eq!(
            kernel.resync(boot).unwrap().cpus,
            2,
            "CPU 2 is not declared"
        );
        unsafe { kernel.sync.offline(1) }.unwrap();
        assert_eq!(declare(boot, 2, first), Ok(()), "given free");
        unsafe { kernel.sync.offline(2) }.unwrap();
    });
}

/// A handler that gives a constant: no acknowledgement and no arrival in another CPU's name.
#[test]
fn a_call_under_another_cpus_number_does_nothing() {
    let machine = Machine::new(Config::new(3, 1));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.bring_up(boot, &[1, 2]);
            let missing = Error::Missing { count: 1, first: 2 };
            assert_eq!(kernel.resync(boot), Err(missing));
        },
        |ap| kernel.ap(ap),
        |cpu| {
            if cpu.number() == 2 {
                let own = cpu.machine().config().apic_id(2);
                let declared = cpu.machine().config().apic_id(1);
                let attended = kernel.sync.attend(cpu, 1);
                // Or CPU 1 has come already.
                let differs = Error::ApicIdDiffers {
                    cpu: 1,
                    declared,
                    own,
                };
                assert!(
                    attended == Err(differs) || attended == Err(Error::ArrivedTwice { cpu: 1 }),
                    "{attended:?}"
                );
            } else {
                kernel.interrupt(cpu);
            }
        },
    );
}

/// An AP whose scheduler took it for the boot CPU, with either number.
#[test]
fn an_ap_neither_suspends_nor_leads() {
    let machine = Machine::new(Config::new(2, 1));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.bring_up(boot, &[1]);
            kernel.resync(boot).unwrap().ok().unwrap();
            let (_, target) = kernel.sync.target().unwrap();
            assert_eq!(target.pat, firmware_map().pat, "the AP's is nobody's model");
        },
        |ap| {
            let (declared, own) = (
                ap.machine().config().apic_id(0),
                ap.machine().config().apic_id(1),
            );
            let _ = kernel.sync.ap_online(ap, 1, |_| {}).unwrap();
            unsafe { ap.wrmsr(MsrAddr::PAT, Pat::LINUX.raw()) }.unwrap();
            let not = Error::NotBootCpu { cpu: 1, boot: 0 };
            let differs = Error::ApicIdDiffers {
                cpu: 0,
                declared,
                own,
            };
            for (number, error) in [(1, not), (0, differs)] {
                assert_eq!(kernel.sync.suspend(ap, number), Err(error));
                assert_eq!(kernel.sync.resync(ap, number, |_| {}), Err(error));
                assert_eq!(kernel.sync.check(ap, number, |_| {}), Err(error));
                let changed = unsafe { kernel.sync.change(ap, number, &firmware_map(), |_| {}) };
                assert_eq!(changed, Err(error));
                assert_eq!(unsafe { kernel.sync.boot_resume(ap, number) }, Err(error));
            }
            kernel.signal(1);
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| kernel.interrupt(cpu),
    );
}

/// A sleep that nobody announced, from which the machine wakes with its MTRRs on: without the PAT.
#[test]
fn a_sleep_without_suspend_is_resumed_all_the_same() {
    for scribble in [Scribble::LikeBoot, Scribble::Reset, Scribble::Off] {
        let machine = Machine::new(Config::new(2, 2));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, with_pat(policy(Resync::Early), Pat::LINUX));
            kernel.bring_up(boot, &[2, 1, 3]);
            boot.work(1_000_000);
            boot.s3(&S3::all(scribble));
            let outcome = unsafe { kernel.sync.boot_resume(boot, 0) }.unwrap();
            assert_eq!(outcome.error, None);
            let mut want = firmware_map();
            want.pat = Some(Pat::LINUX);
            assert_cpu(&machine, 0, &want, "the boot CPU");
            assert_eq!(kernel.sync.online(), 1);
            kernel.bring_up(boot, &[2, 1, 3]);
            kernel.resync(boot).unwrap().ok().unwrap();
        });
        assert_all_equal(&machine, "after a sleep nobody announced");
        machine.check().unwrap();
    }
}

#[test]
fn all_that_are_missing_are_named_after_one_bound() {
    let machine = Machine::new(Config::new(6, 1));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.bring_up(boot, &[1, 2, 3, 4, 5]);
            let since = boot.rdtsc();
            let ipis = boot.ipis();
            let kick = |n: usize| {
                if ![2, 3, 5].contains(&n) {
                    ipis.send(n);
                }
            };
            let led = kernel.sync.resync(boot, 0, kick);
            assert_eq!(led, Err(Error::Missing { count: 3, first: 2 }));
            let took = boot.rdtsc() - since;
            let bound = crate::common::ticks(crate::common::BOUNDS.gather);
            assert!(took < 2 * bound, "{took} ticks");
            let missing = || kernel.sync.report().cpus().filter(|line| line.missing);
            let numbers: Vec<usize> = missing().map(|line| line.cpu).collect();
            assert_eq!(numbers, [2, 3, 5]);
            let report = kernel.sync.report().to_string();
            assert!(report.contains("missing       2-3,5"), "{report}");
            kernel.resync(boot).unwrap().ok().unwrap();
            assert_eq!(missing().count(), 0, "they have come since");
        },
        |ap| kernel.ap(ap),
        |cpu| kernel.interrupt(cpu),
    );
}

#[test]
fn a_change_that_some_cpu_refuses_is_no_success() {
    let mut config = Config::new(2, 1);
    config.faults = vec![Fault::new(1, At::Wrmsr(2), What::Gp)];
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        kernel.bring_up(boot, &[1]);
        let mut refused = 0;
        for round in 0..4 {
            let mut want = firmware_map();
            want.fixed[round] ^= 0x0606_0606_0606_0606;
            let summary = kernel.change(boot, &want).unwrap();
            let count = summary.out_of_sync;
            match summary.ok() {
                Ok(_) => assert_eq!(count, 0),
                Err(error) => {
                    assert_eq!(error, Error::OutOfSync { count: 1 });
                    refused += 1;
                }
            }
        }
        assert_eq!(refused, 1, "the first; the next one writes everything");
    });
}

#[test]
fn bounds_that_nobody_can_keep_are_refused_and_times_are_times() {
    let machine = Machine::new(Config::new(1, 1));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let short = |bounds| Policy {
            bounds,
            ..policy(Resync::Early)
        };
        let zero = std::time::Duration::ZERO;
        for (bounds, bound) in [
            (
                Bounds {
                    gather: zero,
                    ..Bounds::DEFAULT
                },
                "gather",
            ),
            (
                Bounds {
                    hold: zero,
                    ..Bounds::DEFAULT
                },
                "hold",
            ),
            (
                Bounds {
                    finish: zero,
                    ..Bounds::DEFAULT
                },
                "finish",
            ),
        ] {
            let refused = unsafe { kernel.sync.boot_init(boot, 0, short(bounds)) };
            assert_eq!(refused, Err(Error::BoundTooShort { bound }));
        }
        assert_eq!(machine.counters(0).register_writes(), 0);
        kernel.init(boot, policy(Resync::Early));
        let hz = kernel.sync.platform().and_then(|platform| platform.tsc_hz);
        assert_eq!(
            hz.map(|hz| hz.get()),
            Some(1_000_000_000),
            "a tick is a nanosecond"
        );
    });
}

/// The kick of CPU 2 reaches CPU 1, whose handler answers as CPU 2: nobody stands still for its word.
#[test]
fn an_answer_under_another_cpus_number_holds_nobody() {
    let mut config = Config::new(2, 2);
    config.scope = mtrr_pat::sim::MtrrScope::Thread;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            kernel.bring_up(boot, &[1, 2]);
            machine.set_registers(3, &crate::common::one_cpu::another_map());
            kernel.bring_up(boot, &[3]);
            let three = outcome(&kernel, 3);
            assert_eq!(three.error, Some(Error::SiblingsNotHeld { cpu: 2 }));
            kernel.resync(boot).unwrap().ok().unwrap();
        },
        |ap| {
            let (n, ipis) = (ap.number(), ap.ipis());
            let wrong = |sibling: usize| ipis.send(if sibling == 2 { 1 } else { sibling });
            let _ = kernel.sync.ap_online(ap, n, wrong).unwrap();
            kernel.signal(n);
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| {
            let (declared, own) = (
                cpu.machine().config().apic_id(2),
                cpu.machine().config().apic_id(1),
            );
            if cpu.number() == 1 {
                let differs = Error::ApicIdDiffers {
                    cpu: 2,
                    declared,
                    own,
                };
                let held = kernel.sync.hold_point(cpu, 2);
                assert!(held == Ok(()) || held == Err(differs), "{held:?}");
            }
            kernel.interrupt(cpu);
        },
    );
    machine.check().unwrap();
}

/// CPU 1 has the APIC id 0x101, whose low eight bits leaf 1 gives: they are another CPU's id.
#[test]
fn the_low_bits_of_a_long_apic_id_are_not_that_id() {
    let mut config = Config::new(2, 1);
    let long = CpuidWords {
        eax: 0,
        ebx: 1,
        ecx: 0x100,
        edx: 0x101,
    };
    config
        .cpuid
        .extend([0xb, 0x1f].map(|leaf| (Some(1), leaf, 0, long)));
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let said = std::sync::Mutex::new(Vec::new());
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            for id in [1, 0x101] {
                kernel.start_at(boot, 1, Place::Apic(id)).unwrap();
                assert_eq!(kernel.wait_for(boot, 1), id == 0x101);
                unsafe { kernel.sync.offline(1) }.unwrap();
            }
        },
        |ap| {
            let number = kernel.sync.own_number(ap);
            let online = kernel.sync.ap_online(ap, 1, |_| {});
            said.lock().unwrap().push((number, online.err()));
            if online.is_ok() {
                kernel.signal(1);
            }
        },
        |cpu| kernel.interrupt(cpu),
    );
    let differs = Error::ApicIdDiffers {
        cpu: 1,
        declared: 1,
        own: 0x101,
    };
    let expected = [(None, Some(differs)), (Some(1), None)];
    assert_eq!(*said.lock().unwrap(), expected);
}

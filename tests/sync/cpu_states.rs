//! Where a CPU is in its life, as the boot CPU that waits for it sees it.

use crate::common::{Kernel, MODES, policy};
use mtrr_pat::cpu::CpuidReader;
use mtrr_pat::error::Error;
use mtrr_pat::rendezvous::CpuState;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Machine};
use mtrr_pat::topology::{Place, own_apic_id, smt_shift};

#[test]
fn a_cpu_is_running_once_it_is_up_in_line_or_not() {
    for mode in MODES {
        let machine = Machine::new(Config::new(2, 2));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let state = |n| kernel.sync.state(n).unwrap();
            assert_eq!(state(0), CpuState::Absent);
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
            assert_eq!(state(0), CpuState::Running);
            for ap in 1..4 {
                assert_eq!(state(ap), CpuState::Absent);
                kernel.start(boot, ap).unwrap();
                assert_eq!(state(ap), CpuState::Starting);
                while state(ap) != CpuState::Running {
                    kernel.sync.hold_point(boot, 0).unwrap();
                }
            }
            unsafe { kernel.sync.parked(3) }.unwrap();
            assert_eq!(state(3), CpuState::Parked);
            let out = kernel.sync.state(1 << 20).unwrap_err();
            assert!(matches!(out, Error::CpuOutOfRange { .. }));
        });
        machine.check().unwrap();
    }
}

#[test]
fn an_outcome_with_an_error_is_no_ok() {
    let machine = Machine::new(Config::new(1, 1));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let mode = MODES[0];
        let mut outcome = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
        assert_eq!(outcome.ok(), Ok(()));
        outcome.error = Some(Error::TargetBusy);
        assert_eq!(outcome.ok(), Err(Error::TargetBusy));
    });
}

#[test]
fn a_cpu_of_this_crate_is_read_by_the_topology() {
    let machine = Machine::new(Config::new(4, 2));
    let config = machine.config();
    machine.run(
        |boot| {
            boot.send_init_sipi(5);
            boot.work(1_000_000);
            let shift = smt_shift(&CpuidReader(boot)).map(u32::from);
            assert_eq!(shift, Some(config.smt_shift()));
        },
        |ap| assert_eq!(own_apic_id(&CpuidReader(ap)), config.apic_id(5)),
        |_| (),
    );
    assert_eq!(machine.counters(5).starts, 1);
}

/// A wrong id in the table of CPUs: nobody comes for it, and the report does not forget that somebody was meant to.
#[test]
fn who_was_given_up_is_in_the_report() {
    let machine = Machine::new(Config::new(2, 2));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(MODES[0])) }.unwrap();
        unsafe { kernel.sync.starting(boot, 3, Place::Apic(77)) }.unwrap();
        unsafe { kernel.sync.offline(3) }.unwrap();
        let report = kernel.sync.report();
        let gone = report.cpus().find(|line| line.cpu == 3).unwrap();
        assert_eq!(gone.state, CpuState::Absent);
        assert_eq!(
            gone.outcome.map(|outcome| outcome.path),
            Some(Path::NeverCame)
        );
        assert_eq!(report.out_of_sync().count(), 0, "it does not run");
        let text = report.to_string();
        assert!(text.contains("\n  never_came    3"), "{text}");
        // It comes after all: what was said of it is of the past, and one that ran and is unplugged was there.
        kernel.start(boot, 3).unwrap();
        let starting = report.cpus().find(|line| line.cpu == 3).unwrap();
        assert_eq!(starting.outcome, None);
        while kernel.sync.state(3) != Ok(CpuState::Running) {
            kernel.sync.hold_point(boot, 0).unwrap();
        }
        boot.send_init(3);
        unsafe { kernel.sync.offline(3) }.unwrap();
        let text = kernel.sync.report().to_string();
        assert!(!text.contains("never_came"), "{text}");
    });
    machine.check().unwrap();
}

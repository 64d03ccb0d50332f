//! Boot, bring-up, suspend, wake, resync: every scribble, both modes, both MTRR scopes.

use crate::common::{Kernel, MODES, SCOPES, aps, assert_all_equal, policy, with_pat};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, S3, Scribble, What};

fn scribbles() -> Vec<(&'static str, S3)> {
    vec![
        ("kept", S3::all(Scribble::LikeBoot)),
        ("off", S3::all(Scribble::Off)),
        ("zeroed", S3::all(Scribble::Zeroed)),
        ("another range", S3::all(Scribble::AnotherRange)),
        ("PAT reset", S3::all(Scribble::PatReset)),
        (
            "some cores",
            S3::aps(Scribble::only_cores([1], Scribble::Zeroed)),
        ),
        ("APs zeroed", S3::aps(Scribble::Zeroed)),
    ]
}

#[test]
fn every_cpu_is_in_line_after_boot_and_after_each_sleep() {
    for scope in SCOPES {
        for mode in MODES {
            for (name, profile) in scribbles() {
                let mut config = Config::new(4, 2);
                config.scope = scope;
                let machine = Machine::new(config);
                let kernel = Kernel::new();
                let why = format!("{scope:?} {mode:?} {name}");
                kernel.run(&machine, |boot| {
                    let policy = with_pat(policy(mode), Pat::LINUX);
                    let _ = kernel.sync.boot_init(boot, 0, policy).unwrap();
                    for round in 0..3 {
                        if round > 0 {
                            kernel.sleep(boot, &profile);
                        }
                        assert!(kernel.bring_up(boot, &aps(&machine)).is_empty(), "{why}");
                        let postponed = kernel
                            .sync
                            .report()
                            .cpus()
                            .any(|cpu| cpu.outcome.is_some_and(|o| o.path == Path::Postponed));
                        assert!(!postponed, "{why}: {}", kernel.sync.report());
                        if mode == Resync::Deferred {
                            let summary = kernel.resync(boot).unwrap();
                            assert_eq!(summary.out_of_sync, 0, "{why}");
                        }
                        assert_all_equal(&machine, &why);
                        assert_eq!(kernel.sync.online(), 8, "{why}");
                        assert_eq!(kernel.sync.report().out_of_sync().count(), 0, "{why}");
                    }
                });
                machine.check().unwrap_or_else(|v| panic!("{why}: {v}"));
            }
        }
    }
}

/// KVM gives its guests AMD's SYSCFG but faults on TOP_MEM2.
#[test]
fn amd_without_top_mem2_boots() {
    let mut config = Config::amd(2, 1);
    config.faults.push(Fault {
        cpu: 0,
        at: At::Msr(MsrAddr::TOP_MEM2),
        what: What::Gp,
        round: None,
    });
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = kernel
            .sync
            .boot_init(boot, 0, policy(Resync::Early))
            .unwrap();
        assert!(!kernel.sync.platform().unwrap().amd);
        assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
        assert_all_equal(&machine, "without TOP_MEM2");
    });
}

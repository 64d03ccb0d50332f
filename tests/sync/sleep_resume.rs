//! Boot, bring-up, suspend, wake, resync: every scribble, both modes, both MTRR scopes.

use crate::common::{Kernel, MODES, SCOPES, aps, assert_all_equal, policy, with_pat};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Machine, S3, Scribble};

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
                    let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
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

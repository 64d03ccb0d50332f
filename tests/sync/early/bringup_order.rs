//! Early resync of many: in bring-up order, one by one, and all at once.

use crate::common::one_cpu::another_map;
use crate::common::timeline::windows;
use crate::common::{Kernel, SCOPES, aps, assert_all_equal, assert_cpu, outcome, policy};
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, Numbering, Op, S3, Schedule, Scribble, SimCpu, What,
    firmware_map,
};
use mtrr_pat::topology::{Place, bringup_order};

fn two_by_two(scope: MtrrScope) -> Config {
    let mut config = Config::new(2, 2);
    config.scope = scope;
    config.aps = another_map();
    config
}

fn ipis(machine: &Machine) -> usize {
    (0..machine.config().cpus())
        .map(|cpu| machine.counters(cpu).ipi as usize)
        .sum()
}

fn assert_all_in_line(kernel: &Kernel, machine: &Machine, why: &str) {
    assert_all_equal(machine, why);
    assert_eq!(kernel.sync.report().out_of_sync().count(), 0, "{why}");
    let cpus = machine.config().cpus();
    assert_eq!(kernel.sync.online() as usize, cpus, "{why}");
    machine
        .check()
        .unwrap_or_else(|broken| panic!("{why}: {broken}"));
}

#[test]
fn on_sets_of_their_own_every_hold_is_answered() {
    for threads in [2, 4] {
        for together in [false, true] {
            for seed in 0..12 {
                let mut config = Config::new(2, threads);
                config.scope = MtrrScope::Thread;
                config.aps = another_map();
                config.schedule = Schedule::Baton { seed };
                let machine = Machine::new(config);
                let kernel = Kernel::new();
                kernel.run(&machine, |boot| {
                    let mut policy = policy(Resync::Early);
                    // Each of them waits for the windows of up to three others first.
                    policy.bounds.hold = std::time::Duration::from_nanos(20_000_000);
                    let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
                    if together {
                        start_all(&kernel, boot, &aps(&machine));
                    } else {
                        kernel.bring_up(boot, &aps(&machine));
                    }
                });
                let why = format!("{threads} threads, together {together}, seed {seed}");
                let why = format!("{why}: {}", kernel.sync.report());
                assert_all_in_line(&kernel, &machine, &why);
                for cpu in 1..2 * threads {
                    assert_eq!(outcome(&kernel, cpu).path, Path::Window, "{why}");
                }
                let held: u32 = kernel.sync.report().cpus().map(|cpu| cpu.holds).sum();
                assert!(held > 0, "{why}");
            }
        }
    }
}

#[test]
fn two_threads_of_a_core_started_together_count_as_running_for_each_other() {
    for scope in SCOPES {
        for seed in 0..40 {
            let mut config = two_by_two(scope);
            config.schedule = Schedule::Baton { seed };
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
                start_all(&kernel, boot, &[2, 3]);
            });
            let paths = [2, 3].map(|cpu| outcome(&kernel, cpu).path);
            assert!(paths.contains(&Path::Window), "{paths:?}");
            for cpu in [2, 3] {
                assert_cpu(&machine, cpu, &firmware_map(), "together");
            }
            assert_eq!(kernel.sync.online(), 3);
            assert_eq!(kernel.sync.report().out_of_sync().count(), 0);
            // `check` also says that neither ran while the other had caches off.
            machine.check().unwrap();
        }
    }
}

#[test]
fn a_thread_that_waited_for_its_siblings_window_looks_again_before_its_own() {
    // Both find the shared set out of line; CPU 2 goes first. A fault in CPU 3's window would make
    // it put back what it found, for both.
    for seed in 0..20 {
        for k in [2, 20] {
            let mut config = two_by_two(MtrrScope::Core);
            config.schedule = Schedule::Baton { seed };
            config.faults = vec![Fault::new(3, At::Wrmsr(k), What::Gp)];
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
                start_all(&kernel, boot, &[2, 3]);
            });
            assert_eq!(outcome(&kernel, 2).error, None);
            assert_cpu(&machine, 2, &firmware_map(), "not undone by CPU 3");
            let lines: Vec<_> = kernel.sync.report().cpus().collect();
            let windows: u32 = lines.iter().map(|line| line.windows).sum();
            let opened: u64 = (0..4).map(|cpu| machine.counters(cpu).windows).sum();
            assert_eq!(
                u64::from(windows),
                opened,
                "every window is counted, and nothing else"
            );
            machine.check().unwrap();
        }
    }
}

#[test]
fn in_bringup_order_on_shared_sets_nobody_is_held_and_no_window_meets_a_sibling() {
    for (cores, threads) in [(4, 2), (3, 4)] {
        for numbering in [Numbering::ThreadsTogether, Numbering::CoresFirst] {
            let mut config = Config::new(cores, threads);
            config.scope = MtrrScope::Core;
            config.numbering = numbering;
            config.aps = another_map();
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            let places: Vec<Place> = (0..cores * threads)
                .map(|cpu| Place::Apic(machine.config().apic_id(cpu)))
                .collect();
            kernel.run(&machine, |boot| {
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
                let shift = kernel.sync.platform().unwrap().smt_shift;
                let order: Vec<usize> = bringup_order(&places, shift)
                    .filter(|cpu| *cpu != 0)
                    .collect();
                for round in 0..2 {
                    if round > 0 {
                        kernel.sleep(boot, &S3::all(Scribble::Zeroed).with_ap_cr0(0x10));
                        machine.clear_log();
                    }
                    kernel.bring_up(boot, &order);
                    assert_eq!(ipis(&machine), 0);
                    assert_eq!(windows(&machine).len(), cores - 1, "one per core");
                    assert_no_sibling_runs(&machine);
                }
            });
            assert!(kernel.sync.report().cpus().all(|cpu| cpu.holds == 0));
            assert_all_in_line(&kernel, &machine, "in order");
        }
    }
}

/// Declares and starts all at once, then waits for each.
fn start_all(kernel: &Kernel, boot: &mut SimCpu<'_>, aps: &[usize]) {
    for &ap in aps {
        kernel.start(boot, ap).unwrap();
    }
    for &ap in aps {
        assert!(kernel.wait_for(boot, ap), "CPU {ap} did not come");
    }
}

/// No CPU had been started whose sibling then opened a window.
fn assert_no_sibling_runs(machine: &Machine) {
    let config = machine.config();
    let events = machine.events();
    for window in windows(machine) {
        for event in events.iter().filter(|event| event.time < window.end) {
            let runs = matches!(event.op, Op::Start | Op::Sipi(_) | Op::Work(_));
            let core = config.place(event.cpu).0;
            let sibling = event.cpu != window.cpu && core == window.core;
            assert!(!(runs && sibling), "{event:?} before {window:?} ended");
        }
    }
}

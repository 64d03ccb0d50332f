//! Deferred resync, run-time change and check: all meet, or nothing is changed.

mod attendance;
mod back_to_back;
mod compare_before_window;
mod cost;
mod declared_while_open;
mod stolen_time;
mod unfinished;

use crate::common::one_cpu::another_map;
use crate::common::timeline::{assert_cores_in_parallel_threads_in_turn, most_in_series, windows};
use crate::common::{Kernel, SCOPES, aps, assert_all_equal, assert_cpu, outcome, policy};
use mtrr_pat::delta::Changes;
use mtrr_pat::error::{Error, Fixture};
use mtrr_pat::memtype::MemType;
use mtrr_pat::policy::Resync;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MsrAddr, SysCfg, VariableMtrr};
use mtrr_pat::report::Path;
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, Numbering, S3, Scribble, SimCpu, What, firmware_map,
};
use mtrr_pat::snapshot::Snapshot;

fn config(cores: usize, threads: usize, scope: MtrrScope) -> Config {
    let mut config = Config::new(cores, threads);
    config.scope = scope;
    config
}

/// Boots and brings all APs up, in line.
fn boot_all(kernel: &Kernel, boot: &mut SimCpu<'_>) {
    let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) }.unwrap();
    let aps = aps(&boot.machine());
    assert!(kernel.bring_up(boot, &aps).is_empty());
    assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
}

fn wc_range() -> VariableMtrr {
    let bits = firmware_map().phys_bits;
    VariableMtrr::from_block(0xd000_0000, 0x1000_0000, MemType::WriteCombining, bits).unwrap()
}

#[test]
fn a_gathering_that_somebody_misses_changes_nothing_and_names_them() {
    for scope in SCOPES {
        let mut config = config(3, 2, scope);
        // Interrupts do not reach them any more once they are up.
        for cpu in [2, 5] {
            config
                .faults
                .push(Fault::new(cpu, At::Op(400), What::Stuck));
        }
        config.log = false;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        machine.run(
            |boot| {
                boot_all(&kernel, boot);
                boot.send_ipi(2);
                boot.send_ipi(5);
                boot.work(10_000_000);
                let before: Vec<Snapshot> = (0..6).map(|cpu| machine.registers(cpu)).collect();
                let epoch = kernel.sync.target().unwrap().0;
                let missing = Err(Error::Missing { count: 2, first: 2 });
                assert_eq!(kernel.resync(boot), missing);
                assert_eq!(kernel.change(boot, &another_map()), missing);
                assert_eq!(kernel.check(boot), missing);
                for (cpu, before) in before.iter().enumerate() {
                    assert_eq!(machine.registers(cpu), *before, "CPU {cpu}");
                }
                let (now, target) = kernel.sync.target().unwrap();
                assert_eq!((now, target.variable), (epoch, firmware_map().variable));
                for cpu in [2, 5] {
                    unsafe { kernel.sync.offline(cpu) }.unwrap();
                }
                let changed = kernel.change(boot, &another_map()).unwrap();
                assert_eq!((changed.cpus, changed.out_of_sync), (4, 0));
            },
            |ap| kernel.ap(ap),
            |cpu| {
                let healthy = ![2, 5].contains(&cpu.number());
                kernel.interrupt(cpu);
                // The others are struck in here at last.
                let mut left = if healthy { 0 } else { 400 };
                while left > 0 {
                    let _ = kernel.sync.hold_point(cpu, cpu.number());
                    let _ = mtrr_pat::cpu::CpuOps::rdtsc(cpu);
                    left -= 1;
                }
            },
        );
        for cpu in [0, 1, 3, 4] {
            assert_cpu(&machine, cpu, &another_map(), "the rest");
        }
        machine.check().unwrap();
    }
}

#[test]
fn windows_are_parallel_across_cores_and_in_turn_within_one() {
    for (cores, threads) in [(4, 2), (4, 4), (6, 1), (8, 2)] {
        for scope in SCOPES {
            for numbering in [Numbering::ThreadsTogether, Numbering::CoresFirst] {
                let mut config = config(cores, threads, scope);
                config.numbering = numbering;
                let machine = Machine::new(config);
                let kernel = Kernel::new();
                kernel.run(&machine, |boot| {
                    boot_all(&kernel, boot);
                    let per_core = match scope {
                        MtrrScope::Core => 1,
                        MtrrScope::Thread => threads,
                    };
                    let assert_shape = |cores: usize| {
                        let all = windows(&machine);
                        assert_eq!(all.len(), cores * per_core, "{all:?}");
                        assert_eq!(most_in_series(&all), per_core);
                        assert_cores_in_parallel_threads_in_turn(&all);
                        machine.check().unwrap();
                        machine.clear_log();
                    };
                    machine.clear_log();
                    let _ = kernel.change(boot, &another_map()).unwrap();
                    assert_shape(cores);
                    assert_all_equal(&machine, "changed");

                    let sleep = S3::all(Scribble::Zeroed).with_ap_cr0(0x10);
                    kernel.sleep(boot, &sleep);
                    kernel.bring_up(boot, &aps(&machine));
                    machine.clear_log();
                    let _ = kernel.resync(boot).unwrap();
                    // The boot CPU was restored before; its siblings with it, if they share.
                    let all = windows(&machine);
                    let boot_core = if scope == MtrrScope::Core {
                        0
                    } else {
                        threads - 1
                    };
                    assert_eq!(all.len(), (cores - 1) * per_core + boot_core);
                    assert_eq!(most_in_series(&all), per_core);
                    assert_cores_in_parallel_threads_in_turn(&all);
                    assert_all_equal(&machine, "resumed");
                });
                machine.check().unwrap();
            }
        }
    }
}

#[test]
fn the_time_a_change_takes_does_not_grow_with_the_number_of_cores() {
    // In windows, not in ticks: the longest chain of windows that follow each other.
    let chain = |cores: usize| {
        let machine = Machine::new(config(cores, 1, MtrrScope::Core));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            boot_all(&kernel, boot);
            machine.clear_log();
            let _ = kernel.change(boot, &another_map()).unwrap();
        });
        let all = windows(&machine);
        let mut longest = 0;
        let mut ends: Vec<(u64, usize)> = Vec::new();
        for window in &all {
            let before = ends.iter().filter(|(end, _)| *end <= window.start);
            let depth = 1 + before.map(|(_, depth)| *depth).max().unwrap_or(0);
            ends.push((window.end, depth));
            longest = longest.max(depth);
        }
        assert_eq!(all.len(), cores);
        longest
    };
    assert_eq!((chain(4), chain(16), chain(32)), (1, 1, 1));
}

#[test]
fn a_check_writes_nothing_and_reports_every_cpu_that_differs() {
    for scope in SCOPES {
        let machine = Machine::new(config(3, 2, scope));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            boot_all(&kernel, boot);
            let mut pat_off = firmware_map();
            pat_off.pat = another_map().pat;
            machine.set_registers(1, &pat_off);
            let mut fixed_off = firmware_map();
            fixed_off.fixed[10] = 0;
            machine.set_registers(4, &fixed_off);
            let before: Vec<Snapshot> = (0..6).map(|cpu| machine.registers(cpu)).collect();
            machine.clear_log();
            let summary = kernel.check(boot).unwrap();
            for (cpu, before) in before.iter().enumerate() {
                assert_eq!(machine.counters(cpu).register_writes(), 0, "CPU {cpu}");
                assert!(machine.counters(cpu).rdmsr >= 33, "CPU {cpu} looked");
                assert_eq!(machine.registers(cpu), *before);
            }
            let shared = scope == MtrrScope::Core;
            let differs = |cpu| match cpu {
                1 => Some(Changes::PAT),
                4 => Some(Changes::FIXED),
                5 if shared => Some(Changes::FIXED),
                _ => None,
            };
            for cpu in 0..6 {
                let outcome = outcome(&kernel, cpu);
                let path = if differs(cpu).is_some() {
                    Path::Differs
                } else {
                    Path::InSync
                };
                assert_eq!((outcome.path, outcome.error), (path, None), "CPU {cpu}");
                assert_eq!(outcome.changes, differs(cpu).unwrap_or_default());
            }
            let count = if shared { 3 } else { 2 };
            assert_eq!(
                (summary.cpus, summary.differed, summary.out_of_sync),
                (6, count, count)
            );
            let said = format!("rendezvous of 6 CPUs, {count} differed, {count} out of sync");
            assert!(summary.to_string().ends_with(&said), "{summary}");
            let off: Vec<usize> = kernel.sync.report().out_of_sync().map(|c| c.cpu).collect();
            assert_eq!(off.len() as u32, count);

            // The next resync mends them.
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
            assert_all_equal(&machine, "mended");
            let again = kernel.check(boot).unwrap();
            assert_eq!((again.differed, again.out_of_sync), (0, 0));
        });
        machine.check().unwrap();
    }
}

#[test]
fn a_write_combining_range_comes_and_goes_on_all_cpus() {
    for scope in SCOPES {
        let machine = Machine::new(config(4, 2, scope));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            boot_all(&kernel, boot);
            let (epoch, old) = kernel.sync.target().unwrap();
            let mut new = old;
            new.variable[5] = wc_range();
            machine.clear_log();
            let summary = kernel.change(boot, &new).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (8, 0));
            assert_eq!(summary.epoch, epoch + 1);
            for cpu in 0..8 {
                assert_eq!(machine.registers(cpu).variable[5], wc_range());
                let counters = machine.counters(cpu);
                let wrote = counters.wrmsr != 0;
                assert_eq!(counters.wrmsr, if wrote { 2 + 2 } else { 0 });
                assert!(wrote || scope == MtrrScope::Core);
            }
            assert_all_equal(&machine, "new");
            let _ = kernel.change(boot, &old).unwrap();
            assert_all_equal(&machine, "old");
            assert_eq!(machine.registers(7), firmware_map());
            // It outlives S3 too.
            let _ = kernel.change(boot, &new).unwrap();
            kernel.sleep(boot, &S3::all(Scribble::LikeBoot));
            kernel.bring_up(boot, &aps(&machine));
            let _ = kernel.resync(boot).unwrap();
            assert_eq!(machine.registers(6).variable[5], wc_range());
            assert_all_equal(&machine, "after S3");
        });
        machine.check().unwrap();
    }
}

#[test]
fn a_target_the_hardware_would_refuse_is_named_and_nobody_is_called() {
    let machine = Machine::new(config(2, 2, MtrrScope::Core));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        boot_all(&kernel, boot);
        let (_, good) = kernel.sync.target().unwrap();
        machine.clear_log();
        let mut bad: Vec<(Snapshot, MsrAddr)> = Vec::new();
        let mut with = |msr, spoil: &dyn Fn(&mut Snapshot)| {
            let mut target = good;
            spoil(&mut target);
            bad.push((target, msr));
        };
        for reserved in [2, 3, 7, 0xff] {
            with(MsrAddr::phys_base(4), &|t| t.variable[4].base = reserved);
            with(MsrAddr(0x268), &|t| t.fixed[3] = reserved << 8);
            with(MsrAddr::MTRR_DEF_TYPE, &|t| {
                t.def_type = mtrr_pat::regs::MtrrDefType::from_raw(0xc00 | reserved);
            });
        }
        for reserved in [2, 3, 8, 0xff] {
            with(MsrAddr::PAT, &|t| {
                t.pat = Some(mtrr_pat::pat::Pat::from_raw(reserved << 16));
            });
        }
        with(MsrAddr::phys_base(9), &|t| t.variable[9].base = 1 << 39);
        with(MsrAddr::phys_base(9), &|t| t.variable[9].base = 0x100);
        with(MsrAddr::phys_mask(0), &|t| t.variable[0].mask |= 1 << 39);
        with(MsrAddr::phys_mask(0), &|t| t.variable[0].mask |= 1);
        with(MsrAddr::MTRR_DEF_TYPE, &|t| {
            t.def_type = mtrr_pat::regs::MtrrDefType::from_raw(0x1c00);
        });
        for (target, msr) in bad {
            let refused = kernel.change(boot, &target);
            assert_eq!(refused, Err(Error::InvalidTarget { msr }), "{target:?}");
        }
        let mut foreign: Vec<(Snapshot, Fixture)> = Vec::new();
        let mut with = |part, spoil: &dyn Fn(&mut Snapshot)| {
            let mut target = good;
            spoil(&mut target);
            foreign.push((target, part));
        };
        with(Fixture::Mtrrcap, &|t| t.cap = None);
        with(Fixture::Pat, &|t| t.pat = None);
        with(Fixture::TopMem2, &|t| t.top_mem2 = 1 << 33);
        with(Fixture::Syscfg, &|t| t.fixed_dram_bits = true);
        with(Fixture::Syscfg, &|t| t.syscfg = Some(SysCfg::empty()));
        with(Fixture::Width, &|t| {
            t.phys_bits = PhysBits::new(46).unwrap()
        });
        for (target, part) in foreign {
            let refused = kernel.change(boot, &target);
            assert_eq!(refused, Err(Error::ForeignTarget { part }), "{target:?}");
        }
        for cpu in 0..4 {
            let counters = machine.counters(cpu);
            assert_eq!(counters.register_writes() + counters.ipi, 0);
        }
    });
    machine.check().unwrap();
}

#[test]
fn a_cpu_stuck_after_the_commit_is_named_and_its_sibling_left_alone() {
    for at in [At::WindowEntry(1), At::InWindow(5), At::InWindow(40)] {
        for scope in SCOPES {
            let mut config = config(3, 2, scope);
            config.faults.push(Fault::new(2, at, What::Stuck));
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                boot_all(&kernel, boot);
                let stuck = Err(Error::Stuck { count: 1, first: 2 });
                assert_eq!(kernel.change(boot, &another_map()), stuck);
                for cpu in [0, 1, 4, 5] {
                    assert_cpu(&machine, cpu, &another_map(), "healthy");
                    assert_eq!(outcome(&kernel, cpu).error, None);
                }
                // Its caches may be off at any moment: the sibling did not do its part, and says so.
                let error = outcome(&kernel, 3).error;
                assert_eq!(error, Some(Error::SiblingStuck { cpu: 2 }));
                let off: Vec<usize> = kernel.sync.report().out_of_sync().map(|c| c.cpu).collect();
                assert_eq!(off, [2, 3], "the stuck one too, whatever it did before");
                let report = kernel.sync.report().to_string();
                assert!(report.contains("\n  not finished  2\n"), "{report}");
                assert!(report.contains("\n  failed        3\n"), "{report}");
                // It does not come to the next either, and those who go away again have not got stuck.
                let missing = Err(Error::Missing { count: 1, first: 2 });
                assert_eq!(kernel.resync(boot), missing);
                let report = kernel.sync.report();
                let stuck = report.cpus().filter(|line| line.unfinished);
                assert!(stuck.map(|line| line.cpu).eq([2]), "{report}");
            });
            let broken = machine.violations();
            // What the sibling does afterwards, it does with the core's caches off.
            assert!(
                broken.iter().all(|violation| violation.cpu == 3),
                "{broken:?}"
            );
        }
    }
}

#[test]
fn those_in_line_are_compared_and_write_nothing() {
    for scope in SCOPES {
        let machine = Machine::new(config(3, 2, scope));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) }.unwrap();
            kernel.bring_up(boot, &[1, 2, 3]);
            machine.set_registers(2, &another_map());
            let _ = kernel.resync(boot).unwrap();
            machine.set_registers(4, &another_map());
            machine.set_registers(5, &another_map());
            kernel.bring_up(boot, &[4, 5]);
            machine.clear_log();
            let before = [0, 1, 2, 3].map(|cpu| outcome(&kernel, cpu));
            let summary = kernel.resync(boot).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (6, 0));
            // What it needed when it came in line is told still.
            assert_eq!([0, 1, 2, 3].map(|cpu| outcome(&kernel, cpu)), before);
            assert!(before.iter().any(|had| had.path != Path::InSync));
        });
        for cpu in 0..4 {
            let counters = machine.counters(cpu);
            assert_eq!(counters.register_writes(), 0, "CPU {cpu}");
            assert_eq!(
                counters.rdmsr, 33,
                "CPU {cpu}: firmware may have written to it"
            );
            assert_eq!(counters.wbinvd, 0, "CPU {cpu}");
        }
        assert!(machine.counters(4).wrmsr > 0);
        assert_all_equal(&machine, "mended");
        machine.check().unwrap();
    }
}

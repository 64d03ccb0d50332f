//! CPUs whose place is not known: any other may share their registers, so all flush, all windows
//! keep them out, and one that is not started after all leaves nothing behind.

use crate::common::one_cpu::another_map;
use crate::common::timeline::{Window, windows};
use crate::common::{Kernel, MODES, aps, outcome, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, What, firmware_map};
use mtrr_pat::topology::Place;

#[track_caller]
fn assert_no_stale_types(machine: &Machine, why: &str) {
    for cpu in 0..machine.config().cpus() {
        let stale = machine.stale_entries(cpu);
        assert!(stale.is_empty(), "{why}: CPU {cpu}: {stale:?}");
    }
}

/// CPUs 2 and 3 share their set: CPU 3 finds it in line after CPU 2 had its window, and cannot know
/// that it was not always.
#[test]
fn they_flush_after_a_window_of_anybody() {
    for mode in MODES {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Core;
        config.aps.def_type = config.aps.def_type.disabled();
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(mode));
            for ap in aps(&machine) {
                kernel.start_at(boot, ap, Place::Unknown).unwrap();
                assert!(kernel.wait_for(boot, ap));
            }
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
            assert_eq!(outcome(&kernel, 2).path, Path::Window);
            assert_eq!(outcome(&kernel, 3).path, Path::Flush);
            // Others flush on their way out.
            boot.work(1_000_000);
            assert_no_stale_types(&machine, &format!("{mode:?}"));
        });
        machine.check().unwrap();
    }
}

#[test]
fn they_flush_after_a_change() {
    let mut config = Config::new(1, 2);
    config.scope = MtrrScope::Core;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        kernel.start_at(boot, 1, Place::Unknown).unwrap();
        assert!(kernel.wait_for(boot, 1));
        let mut want = firmware_map();
        // All of the range uncachable, code as well.
        want.variable[0].base &= !0xff;
        assert_eq!(kernel.change(boot, &want).unwrap().out_of_sync, 0);
        assert_no_stale_types(&machine, "changed");
    });
    machine.check().unwrap();
}

/// One CPU at a time acts while a place is not known: the leader waits for as many turns. Each is
/// slower than half of what it grants one CPU, and all of them together take longer than it grants two.
#[test]
fn the_leader_waits_for_a_turn_of_each() {
    let mut config = Config::new(6, 1);
    let slow = crate::common::ticks(crate::common::BOUNDS.finish) * 1000 * 3 / 5;
    config.faults = (1..6)
        .map(|cpu| Fault::new(cpu, At::InWindow(2), What::Delay(slow)))
        .collect();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        for ap in aps(&machine) {
            kernel.start_at(boot, ap, Place::Unknown).unwrap();
            assert!(kernel.wait_for(boot, ap));
        }
        let since = boot.rdtsc();
        let summary = kernel.change(boot, &another_map()).unwrap();
        summary.ok().unwrap();
        let took = boot.rdtsc() - since;
        let two = 2 * crate::common::ticks(crate::common::BOUNDS.finish);
        assert!(took > two, "{took} ticks: in turn, and slow");
    });
    machine.check().unwrap();
}

/// CPU 3 is alone on its core as far as anybody knows. `delay` instructions after it was started, its
/// sibling, whose place is not known, is declared and started. Returns when that was.
fn starts_beside_a_window(faults: Vec<Fault>, delay: u64) -> (Machine, Kernel, u64) {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Thread;
    config.aps = another_map();
    config.faults = faults;
    let machine = Machine::new(config);
    let mut kernel = Kernel::new();
    // Who is let in runs for a while.
    kernel.work.1 = 4_000_000;
    let declared = kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        kernel.start(boot, 3).unwrap();
        boot.work(delay);
        let declared = machine.now();
        kernel.start_at(boot, 2, Place::Unknown).unwrap();
        assert!(kernel.wait_for(boot, 3) && kernel.wait_for(boot, 2));
        declared
    });
    (machine, kernel, declared)
}

#[test]
fn they_are_not_started_during_any_window() {
    let mut meant = 0;
    for delay in (0..150).map(|n| n * 2000) {
        let (machine, _, declared) = starts_beside_a_window(Vec::new(), delay);
        machine
            .check()
            .unwrap_or_else(|broken| panic!("{delay}: {broken}"));
        let during =
            |window: &&Window| window.cpu == 3 && (window.start..window.end).contains(&declared);
        meant += windows(&machine).iter().filter(during).count();
    }
    assert!(meant > 0, "no case was the one meant");
}

/// CPU 3 loses time somewhere, also between its look at whether all places are known and its window.
#[test]
fn no_window_opens_once_they_are_started() {
    let (mut before, mut after) = (0, 0);
    for op in 1..200 {
        let late = Fault::new(3, At::Op(op), What::Delay(1_000_000_000));
        let (machine, kernel, _) = starts_beside_a_window(vec![late], 1_000_000);
        machine
            .check()
            .unwrap_or_else(|broken| panic!("{op}: {broken}"));
        let three = outcome(&kernel, 3);
        match (three.path, three.error) {
            (Path::Window, None) => before += 1,
            (Path::Postponed, Some(Error::TopologyUnknown)) => after += 1,
            _ => panic!("{op}: {three}"),
        }
    }
    assert!(
        before > 0 && after > 0,
        "one of the two orders was not seen"
    );
}

/// A CPU of unknown place that is refused while a rendezvous is open: afterwards all places are known,
/// and CPU 2, which differs, needs no rendezvous.
#[test]
fn a_start_that_is_refused_leaves_nobody_of_unknown_place() {
    let mut config = Config::new(3, 2);
    config.scope = MtrrScope::Core;
    config.aps = another_map();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let refused = Word::new(0);
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            assert!(kernel.bring_up(boot, &[1]).is_empty());
            let _ = kernel.check(boot).unwrap();
            assert_eq!(refused.load(Ordering::Acquire), 1);
            assert!(kernel.bring_up(boot, &[2]).is_empty());
            let two = outcome(&kernel, 2);
            assert_eq!((two.path, two.error), (Path::Window, None));
        },
        |ap| kernel.ap(ap),
        |cpu| {
            if cpu.number() == 1 && refused.load(Ordering::Acquire) == 0 {
                let told = unsafe { kernel.sync.starting(cpu, 4, Place::Unknown) };
                assert_eq!(told, Err(Error::Busy));
                refused.store(1, Ordering::Release);
            }
            kernel.interrupt(cpu);
        },
    );
}

/// Who counts as a sibling changes while a CPU of unknown place is there: sums over other CPUs are not
/// compared. CPU 2 sees a window of a stranger, and then one of its real sibling.
#[test]
fn a_window_of_a_sibling_is_not_taken_for_one_of_a_stranger() {
    let mut config = Config::new(3, 2);
    config.scope = MtrrScope::Core;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        assert!(kernel.bring_up(boot, &[2]).is_empty());
        kernel.start_at(boot, 4, Place::Unknown).unwrap();
        assert!(kernel.wait_for(boot, 4));
        machine.set_registers(4, &another_map());
        assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
        unsafe { kernel.sync.offline(4) }.unwrap();
        assert!(kernel.bring_up(boot, &[3]).is_empty());
        machine.set_registers(3, &another_map());
        let before = machine.counters(2).cr4_writes;
        let met = kernel.resync(boot).unwrap();
        assert_eq!((met.cpus, met.out_of_sync), (3, 0));
        assert!(
            machine.counters(2).cr4_writes > before,
            "it flushes its TLB"
        );
    });
    for cpu in [0, 2, 3] {
        assert!(machine.stale_entries(cpu).is_empty(), "CPU {cpu}");
    }
    machine.check().unwrap();
}

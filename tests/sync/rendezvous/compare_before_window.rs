//! In a rendezvous all CPUs are compared at once, before any of them has its caches off, and only act
//! in turn; what a sibling's window changed meanwhile is seen.

use crate::common::one_cpu::another_map;
use crate::common::smm;
use crate::common::timeline::windows;
use crate::common::{Kernel, SCOPES, aps, assert_all_equal, outcome, policy};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Event, Machine, MtrrScope, Op, SimCpu, firmware_map};

/// Brings all APs up and leads a resync, of which the event log is left.
fn resync(config: Config) -> (Machine, Kernel) {
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot: &mut SimCpu<'_>| {
        let init = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) };
        let _ = init.unwrap();
        assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
        machine.clear_log();
        let _ = kernel.resync(boot).unwrap();
    });
    machine.check().unwrap();
    (machine, kernel)
}

/// RDMSR of a CPU before and after a point in time.
fn reads(machine: &Machine, cpu: usize, until: u64) -> (usize, usize) {
    let is_read = |event: &Event| event.cpu == cpu && matches!(event.op, Op::Rdmsr(..));
    let events = machine.events().into_iter().filter(is_read);
    let (before, after): (Vec<_>, Vec<_>) = events.partition(|event| event.time < until);
    (before.len(), after.len())
}

#[test]
fn before_the_first_window_opens() {
    for scope in SCOPES {
        let mut config = Config::new(3, 4);
        config.scope = scope;
        config.aps = another_map();
        let (machine, _) = resync(config);
        let windows = windows(&machine);
        let shared = scope == MtrrScope::Core;
        // The boot CPU is in line, and so are its siblings where they share its registers.
        assert_eq!(windows.len(), if shared { 2 } else { 11 }, "{scope:?}");
        for ap in aps(&machine) {
            let (before, after) = reads(&machine, ap, windows[0].start);
            assert_eq!(before, 34, "CPU {ap}, {scope:?}");
            let first = windows.iter().any(|window| window.cpu == ap)
                && !windows.iter().any(|w| w.cpu / 4 == ap / 4 && w.cpu < ap);
            // Each of 34 writes read back, then everything compared. After a sibling everything is
            // compared before as well; where registers are shared, that leaves the PAT.
            let expected = match (shared, first) {
                (_, true) => 34 + 33,
                (false, false) => 33 + 34 + 33,
                // Its PAT. The boot CPU had no window.
                (true, false) if ap < 4 => 1,
                (true, false) => 33 + 1,
            };
            assert_eq!(after, expected, "CPU {ap}, {scope:?}");
        }
        assert_all_equal(&machine, "in the end");
    }
}

#[test]
fn a_check_needs_no_turns() {
    for scope in SCOPES {
        let mut config = Config::new(2, 4);
        config.scope = scope;
        config.costs.rdmsr = 100_000_000;
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let took = kernel.run(&machine, |boot| {
            let init = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
            let _ = init.unwrap();
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            let start = machine.now();
            let _ = kernel.check(boot).unwrap();
            machine.now() - start
        });
        for cpu in 0..8 {
            let ticks = outcome(&kernel, cpu).ticks;
            let least = 33 * machine.config().costs.rdmsr / 1000;
            assert!(ticks >= least, "CPU {cpu}: {ticks} ticks for 33 RDMSR");
        }
        // The boot CPU's own comparison comes after the commit.
        let rounds = took / (33 * machine.config().costs.rdmsr);
        assert_eq!(rounds, 2, "comparisons one after the other");
    }
}

/// CPU 3 is compared and found in line. Then firmware spoils the registers it shares with CPU 2,
/// whose window fails and leaves E clear: CPU 3 must not take its own earlier word for it.
#[test]
fn what_a_sibling_spoils_is_seen_by_who_was_in_line_before() {
    let mut spoilt = 0;
    for op in 1..120 {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Core;
        config.faults = smm::tears(2, op, 1_000_000_000);
        let (machine, kernel) = resync(config);
        let (two, three) = (outcome(&kernel, 2), outcome(&kernel, 3));
        let torn = matches!(
            two.error,
            Some(Error::WriteFault {
                left: Left::Torn,
                ..
            })
        );
        if torn {
            assert_eq!((three.path, three.error), (Path::Window, None), "{op}");
            // What it opened its window for is not what the first comparison found.
            assert!(!three.changes.is_empty(), "{op}: {three}");
            assert_eq!(machine.registers(3), firmware_map(), "{op}");
            spoilt += 1;
        }
    }
    assert!(spoilt > 0, "no case was the one meant");
}

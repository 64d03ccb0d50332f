//! A CPU that is kept away for longer than it would wait for others (by its hypervisor, by SMM) does
//! not take that for their silence: it looks once more when it is back.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, aps, assert_all_equal, outcome, policy};
use mtrr_pat::error::Error;
use mtrr_pat::policy::{Bounds, Resync};
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, What};
use mtrr_pat::sync::Summary;

/// Ticks, which are nanoseconds: more than anybody needs here.
const BOUND: u64 = 10_000_000;
/// Picoseconds. Others wait four times as long for one that leads or asks.
const AWAY: u64 = 2 * BOUND * 1_000;

/// Boots and brings all in line, while `cpu` is kept away before its `op`-th instruction. Returns
/// whether it had so many.
fn live(mode: Resync, cpu: usize, op: u64) -> bool {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Thread;
    config.aps = another_map();
    config.log = false;
    config.faults = vec![Fault::new(cpu, At::Op(op), What::Delay(AWAY))];
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let mut policy = policy(mode);
        policy.bounds = Bounds {
            gather: std::time::Duration::from_nanos(BOUND),
            hold: std::time::Duration::from_nanos(BOUND),
            // A sibling stands still as long for one that is away in its window.
            finish: std::time::Duration::from_nanos(4 * BOUND),
        };
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
        let lost = kernel.bring_up(boot, &aps(&machine));
        assert!(lost.is_empty(), "{mode:?}, CPU {cpu}, op {op}");
        // Its siblings answer at once: that it was away is not their silence.
        let asked = outcome(&kernel, cpu).error;
        let unheld = matches!(asked, Some(Error::SiblingsNotHeld { .. }));
        assert!(!unheld, "CPU {cpu}, op {op}");
        // The others give up a CPU that is away while they wait for it: only that one, or, where its
        // turn came first, only its sibling is left for the next rendezvous.
        let mut led = kernel.resync(boot);
        for _ in 0..4 {
            let why = format!("{mode:?}, CPU {cpu}, op {op}: {led:?}");
            match led {
                Ok(Summary { out_of_sync: 0, .. }) => break,
                Ok(_) => {
                    let mut off = kernel.sync.report().out_of_sync();
                    assert!(off.all(|line| line.cpu == cpu ^ 1), "{why}");
                }
                Err(Error::Missing { count, first } | Error::Stuck { count, first }) => {
                    assert!((count, first) == (1, cpu) && cpu != 0, "{why}");
                }
                Err(_) => panic!("{why}"),
            }
            led = kernel.resync(boot);
        }
        assert_eq!(led.map(|summary| summary.out_of_sync), Ok(0));
    });
    assert_all_equal(&machine, "in the end");
    machine
        .check()
        .unwrap_or_else(|broken| panic!("{mode:?}, CPU {cpu}, op {op}: {broken}"));
    machine.now() > AWAY
}

#[test]
fn a_leader_that_was_away_sees_who_came_meanwhile() {
    for mode in MODES {
        let struck = (1..).take_while(|op| live(mode, 0, *op)).count();
        assert!(struck > 150, "{mode:?}: {struck}");
    }
}

#[test]
fn an_ap_that_was_away_sees_who_stands_still_meanwhile() {
    for mode in MODES {
        for cpu in [2, 3] {
            let struck = (1..).take_while(|op| live(mode, cpu, *op)).count();
            assert!(struck > 100, "{mode:?}: {struck}");
        }
    }
}

//! A CPU that is declared elsewhere after it was taken back: its old siblings find each other still.

use mtrr_pat::policy::Resync;
use mtrr_pat::regs::MtrrDefType;
use mtrr_pat::sim::{Config, Machine, MtrrScope};
use mtrr_pat::topology::Place;

use crate::common::{Kernel, assert_cpu, outcome, policy};

/// Cores of four threads. CPU 4 is declared in the ring of core 0 first, between others or last, and
/// taken back; then it comes up in its own core. Every window of core 0 holds all of core 0.
#[test]
fn a_ring_is_closed_behind_who_leaves_it() {
    for wrong_after in 1..=3 {
        let mut config = Config::new(2, 4);
        config.scope = MtrrScope::Thread;
        config.aps.def_type = MtrrDefType::from_raw(0);
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let id = |n| Place::Apic(machine.config().apic_id(n));
            kernel.init(boot, policy(Resync::Early));
            // As if by a table that was wrong: an id of core 0 that no CPU has.
            let wrong = Place::Apic(machine.config().apic_id(3));
            for ap in 1..=3 {
                if ap == wrong_after {
                    unsafe { kernel.sync.starting(boot, 4, wrong) }.unwrap();
                    unsafe { kernel.sync.offline(4) }.unwrap();
                }
                if ap < 3 {
                    kernel.start_at(boot, ap, id(ap)).unwrap();
                    assert!(kernel.wait_for(boot, ap));
                }
            }
            kernel.bring_up(boot, &[4, 5]);
            // The last thread of core 0 has to ask the boot CPU and both others.
            kernel.bring_up(boot, &[3]);
            for ap in 1..=5 {
                assert_eq!(outcome(&kernel, ap).error, None, "CPU {ap}");
            }
        });
        for held in [0, 1, 2] {
            let line = kernel.sync.report().cpus().find(|line| line.cpu == held);
            assert!(line.unwrap().holds >= 1, "CPU {held}");
        }
        for cpu in 0..=5 {
            assert_cpu(&machine, cpu, &machine.registers(0), "all of them");
        }
        machine.check().unwrap();
    }
}

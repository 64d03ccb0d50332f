//! A rendezvous that is called right after another one.

use crate::common::{Kernel, assert_caching_on, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::{Config, Machine, Schedule};

/// An AP that comes online takes part in a check; the resync called right after it is called off,
/// as CPU 2 answers the check only.
#[test]
fn an_ap_that_came_to_a_check_is_brought_in_line_whatever_is_called_next() {
    for seed in 0..20 {
        let mut config = Config::new(3, 1);
        config.schedule = Schedule::Baton { seed };
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let asked = Word::new(0);
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                assert!(kernel.bring_up(boot, &[2]).is_empty());
                kernel.start(boot, 1).unwrap();
                let _ = kernel.check(boot).unwrap();
                let missing = Err(Error::Missing { count: 1, first: 2 });
                assert_eq!(kernel.resync(boot), missing);
                assert!(kernel.wait_for(boot, 1));
                assert_caching_on(&machine, 1, &format!("seed {seed}"));
            },
            |ap| kernel.ap(ap),
            |cpu| {
                if cpu.number() != 2 || asked.load(Ordering::Acquire) == 0 {
                    if cpu.number() == 2 {
                        asked.store(1, Ordering::Release);
                    }
                    kernel.interrupt(cpu);
                }
            },
        );
    }
}

//! A CPU that is started again: what its last life left with others means nothing in the next.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, assert_cpu, outcome, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, SimCpu, What};

/// Two cores of two threads; CPU 2 is long in each of its windows.
fn machine(faults: impl IntoIterator<Item = Fault>) -> Machine {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Thread;
    config.aps = another_map();
    config.faults = vec![Fault::new(2, At::InWindow(5), What::Delay(2_000_000_000))];
    config.faults.extend(faults);
    Machine::new(config)
}

/// An AP that polls instead of taking interrupts, and works between.
fn polls(kernel: &Kernel, ap: &mut SimCpu<'_>, over: &Word) {
    let me = ap.number();
    let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
    kernel.signal(me);
    while over.load(Ordering::Acquire) == 0 {
        kernel.sync.hold_point(ap, me).unwrap();
        ap.work(100);
        let now = ap.rdtsc();
        ap.pause_while(over, 0, now + 20_000);
    }
}

/// CPU 3 comes up, then its sibling, twice: the second time with another map again.
fn live(machine: &Machine) {
    let kernel = Kernel::new();
    let over = Word::new(0);
    machine.run(
        |boot| {
            let booted = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
            assert_eq!(booted.unwrap().error, None);
            assert!(kernel.bring_up(boot, &[3, 2]).is_empty());
            unsafe { kernel.sync.offline(2) }.unwrap();
            machine.set_registers(2, &another_map());
            assert!(kernel.bring_up(boot, &[2]).is_empty());
            assert_eq!(outcome(&kernel, 2).path, Path::Window);
            for cpu in [2, 3] {
                assert_cpu(machine, cpu, &machine.registers(0), "started again");
            }
            over.store(1, Ordering::Release);
        },
        |ap| match ap.number() {
            3 => polls(&kernel, ap, &over),
            _ => kernel.ap(ap),
        },
        |cpu| kernel.interrupt(cpu),
    );
    machine.check().unwrap();
}

/// CPU 3 loses a millisecond once, wherever it is: also after its sibling let it go, and before it
/// has taken its word back.
#[test]
fn an_acknowledgement_of_the_last_life_is_none_in_the_next() {
    let steady = machine([]);
    live(&steady);
    let all = steady.ops(3).len() as u64;
    for k in 1..=all {
        live(&machine([Fault::new(
            3,
            At::Op(k),
            What::Delay(1_000_000_000),
        )]));
    }
}

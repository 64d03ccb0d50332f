//! Who is counted when a rendezvous closes, and what its outcomes say.

use std::sync::Mutex;

use crate::common::one_cpu::another_map;
use crate::common::timeline::windows;
use crate::common::{Kernel, outcome, policy, smm};
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::program::flush_tlb;
use mtrr_pat::regs::{MsrAddr, VariableMtrr};
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, Scribble, SimCpu, What, firmware_map};
use mtrr_pat::sync::Attendance;
use mtrr_pat::topology::Place;

/// How CPU 2 left a check.
#[derive(Clone, Copy)]
struct Left {
    /// Since when it had been in it, in picoseconds.
    since: u64,
    /// Whether its MTRRs are off.
    off: bool,
    path: Path,
}

/// CPU 2 attends a check while its sibling CPU 3, still coming online, opens windows that leave the
/// registers they share torn.
fn check_while_a_sibling_tears(op: u64) -> (Machine, Option<Left>) {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Core;
    config.faults = smm::tears(3, op, 3_000_000_000);
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let left = Mutex::new(None);
    machine.run(
        |boot| {
            kernel.init(boot, policy(Resync::Early));
            assert!(kernel.bring_up(boot, &[2]).is_empty());
            kernel.start(boot, 3).unwrap();
            boot.work(100_000);
            // CPU 3 may come too late for it.
            let _ = kernel.check(boot);
        },
        |ap| kernel.ap(ap),
        |cpu: &mut SimCpu<'_>| {
            let me = cpu.number();
            let _ = kernel.sync.hold_point(cpu, me);
            let since = machine.now();
            let attended = kernel.sync.attend(cpu, me);
            // It has let no sibling open a window since it was compared for the last time.
            if me == 2 && attended == Ok(Attendance::Done) {
                let off = !machine.registers(2).def_type.enabled();
                let path = outcome(&kernel, 2).path;
                *left.lock().unwrap() = Some(Left { since, off, path });
            }
        },
    );
    let left = *left.lock().unwrap();
    (machine, left)
}

#[test]
fn a_check_sees_what_a_sibling_did_while_it_gathered() {
    let mut meant = 0;
    for op in 1..60 {
        let (machine, left) = check_while_a_sibling_tears(op);
        let Some(left) = left.filter(|left| left.off) else {
            continue;
        };
        assert_eq!(left.path, Path::Differs, "{op}");
        let meanwhile = windows(&machine)
            .iter()
            .any(|window| window.cpu == 3 && window.start > left.since);
        meant += u32::from(meanwhile);
    }
    assert!(meant > 0, "no case was the one meant");
}

/// An AP that a check only compared comes online by itself as soon as it is let go, while the leader
/// still counts: slots enough are used that counting takes a while.
#[test]
fn an_ap_that_comes_online_right_after_a_check_is_counted() {
    let mut meant = 0;
    for delay in (0..100).map(|n| n * 250) {
        let machine = Machine::new(Config::new(2, 1));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(Resync::Early));
            unsafe { kernel.sync.starting(boot, 63, Place::Apic(126)) }.unwrap();
            unsafe { kernel.sync.offline(63) }.unwrap();
            kernel.start(boot, 1).unwrap();
            boot.work(delay);
            let alone = kernel.sync.online() == 1;
            let checked = kernel.check(boot).unwrap();
            assert!(kernel.wait_for(boot, 1));
            boot.work(1_000_000);
            assert_eq!(kernel.sync.online(), 2, "{delay}: {checked}");
            meant += u32::from(alone && checked.cpus == 2);
        });
    }
    assert!(meant > 0, "no case was the one meant");
}

#[test]
fn a_cpu_that_is_gone_before_the_rendezvous_begins_is_not_counted() {
    for parks in [false, true] {
        let mut config = Config::new(3, 1);
        config.faults = vec![Fault::new(2, At::Start, What::Stuck)];
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let met = machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                assert!(kernel.bring_up(boot, &[1]).is_empty());
                kernel.start(boot, 2).unwrap();
                kernel.check(boot).unwrap()
            },
            |ap| kernel.ap(ap),
            |cpu| {
                // CPU 1, which is called, knows that CPU 2 does not come.
                let gone = if parks {
                    unsafe { kernel.sync.parked(2) }
                } else {
                    unsafe { kernel.sync.offline(2) }
                };
                gone.unwrap();
                kernel.interrupt(cpu);
            },
        );
        assert_eq!((met.cpus, met.out_of_sync), (2, 0), "parks: {parks}");
    }
}

#[test]
fn a_cpu_that_failed_in_a_change_is_not_online() {
    let mut config = Config::new(2, 1);
    config.faults = vec![Fault::new(1, At::Msr(MsrAddr(0x250)), What::Ignored)];
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        assert!(kernel.bring_up(boot, &[1]).is_empty());
        assert_eq!(kernel.sync.online(), 2);
        let mut want = firmware_map();
        want.fixed[0] = 0;
        assert_eq!(kernel.change(boot, &want).unwrap().out_of_sync, 1);
        assert_eq!(kernel.sync.online(), 1);
    });
}

/// Firmware spoils the registers CPU 1 shares with the boot CPU, after that was compared: CPU 1 has a
/// window for it. CPU 2 does not come back from its own.
#[test]
fn a_leader_flushes_also_when_somebody_is_stuck() {
    let mut meant = 0;
    for op in 1..150 {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Core;
        let spoils = Scribble::custom(|_, map| map.variable[0] = VariableMtrr::default());
        config.faults = vec![
            Fault::new(2, At::WindowEntry(1), What::Stuck),
            Fault::new(1, At::Op(op), What::Smm(spoils)),
        ];
        config.aps = another_map();
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(Resync::Deferred));
            assert!(kernel.bring_up(boot, &[1, 2]).is_empty());
            flush_tlb(boot);
            boot.work(1000);
            let mut want = firmware_map();
            want.fixed[0] = 0;
            let met = kernel.change(boot, &want);
            assert_eq!(met, Err(Error::Stuck { count: 1, first: 2 }), "{op}");
            meant += usize::from(outcome(&kernel, 1).path == Path::Window);
            let stale = machine.stale_entries(0);
            assert!(stale.is_empty(), "{op}: {stale:?}");
        });
    }
    assert!(meant > 0, "no case was the one meant");
}

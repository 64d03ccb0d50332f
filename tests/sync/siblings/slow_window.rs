//! A CPU behind a sibling that is slow or stuck in its window: what it says of itself, and what it is
//! given afterwards.

use crate::common::one_cpu::another_map;
use crate::common::wrapped::Wrapped;
use crate::common::{Kernel, SCOPES, assert_cpu, outcome, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::report::Path;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, Schedule, SimCpu, What, firmware_map};
use mtrr_pat::topology::Place;

/// An address both threads use.
const DATA: u64 = 0x1_2345_6000;

/// CPU 2 is kept away inside its window for longer than CPU 3 stands still; it comes back and
/// finishes. CPU 3, postponed, used memory meanwhile; the resync brings it in line.
#[test]
fn a_cpu_postponed_behind_a_slow_sibling_drops_its_translations_in_the_next_resync() {
    for k in [3, 10, 30] {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Core;
        config.aps = another_map();
        // Each thread has its own PAT; a flush for its sake would hide it.
        config.aps.pat = config.boot.pat;
        config.faults = vec![Fault::new(2, At::InWindow(k), What::Delay(200_000_000_000))];
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        let tell = Word::new(0);
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                kernel.start(boot, 2).unwrap();
                kernel.start(boot, 3).unwrap();
                kernel.wait_for(boot, 3);
                assert_eq!(
                    outcome(&kernel, 3).error,
                    Some(Error::SiblingStuck { cpu: 2 })
                );
                while !kernel.wait_for(boot, 2) {}
                assert_eq!(outcome(&kernel, 2).error, None);
                tell.store(1, Ordering::Release);
                boot.work(100_000);
                let summary = kernel.resync(boot).unwrap();
                assert_eq!((summary.cpus, summary.out_of_sync), (3, 0));
                let last = outcome(&kernel, 3);
                let stale = machine.stale_entries(3);
                assert!(stale.is_empty(), "k {k}: {last}: {stale:?}");
            },
            |ap| {
                let me = ap.number();
                let ipis = ap.ipis();
                if me == 3 {
                    // Until its sibling has asked.
                    ap.work(40_000);
                }
                let _ = kernel.sync.ap_online(ap, me, |to| ipis.send(to)).unwrap();
                kernel.signal(me);
                if me == 3 {
                    // The kernel's own data, before interrupts are on.
                    ap.load(DATA);
                }
                while tell.load(Ordering::Acquire) == 0 {
                    let now = ap.rdtsc();
                    ap.pause_while(&tell, 0, now + 1_000_000);
                }
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| kernel.interrupt(cpu),
        );
    }
}

/// Caching is on again, and the CPU in line and counted, once the sibling is declared gone.
#[test]
fn a_cpu_postponed_behind_a_stuck_sibling_comes_in_line_once_that_is_gone() {
    let mut struck = std::collections::BTreeMap::new();
    for schedule in [
        Schedule::Baton { seed: 0 },
        Schedule::Baton { seed: 7 },
        Schedule::Free { seed: 3 },
    ] {
        for scope in SCOPES {
            for (parked, same) in [(false, false), (true, false), (false, true), (true, true)] {
                for late in (0..8_000).step_by(1000) {
                    let mut config = Config::new(2, 2);
                    config.scope = scope;
                    config.log = false;
                    config.schedule = schedule;
                    config.aps = another_map();
                    config.ap_cr0 = 0x6000_0010;
                    config.faults = vec![Fault::new(2, At::InWindow(3), What::Stuck)];
                    let machine = Machine::new(config);
                    if same && scope == MtrrScope::Thread {
                        machine.set_registers(3, &firmware_map());
                    }
                    let kernel = Kernel::new();
                    machine.run(
                        |boot| {
                            kernel.init(boot, policy(Resync::Early));
                            for ap in [2, 3] {
                                let place = Place::Apic(machine.config().apic_id(ap));
                                unsafe { kernel.sync.starting(boot, ap, place) }.unwrap();
                            }
                            boot.send_init_sipi(2);
                            boot.send_init_sipi(3);
                            while !kernel.wait_for(boot, 3) {}
                            let had = outcome(&kernel, 3);
                            if had.error != Some(Error::SiblingStuck { cpu: 2 }) {
                                return;
                            }
                            *struck
                                .entry(format!("{schedule:?} {scope:?} {same}"))
                                .or_insert(0) += 1;
                            assert_eq!(had.path, Path::Postponed);
                            assert_eq!(kernel.sync.online(), 1);
                            if parked {
                                unsafe { kernel.sync.parked(2) }.unwrap();
                            } else {
                                unsafe { kernel.sync.offline(2) }.unwrap();
                            }
                            kernel.wait_for(boot, 1);
                            let summary = kernel.resync(boot).unwrap();
                            assert_eq!((summary.cpus, summary.out_of_sync), (2, 0));
                            assert_eq!(kernel.sync.online(), 2);
                            crate::common::assert_cpu(&machine, 3, &machine.registers(0), "mended");
                            let (cr0, ..) = machine.control_registers(3);
                            assert_eq!(cr0 & (CR0_CD | CR0_NW), 0);
                        },
                        |ap| {
                            if ap.number() == 3 {
                                ap.work(late);
                            }
                            kernel.ap(ap);
                        },
                        |cpu| kernel.interrupt(cpu),
                    );
                }
            }
        }
    }
    assert!(struck.len() >= 8, "{struck:#?}");
}

/// What CPU 2 tore its sibling puts right: the next resync does not say `Torn` any more, nor is there
/// much left to do.
#[test]
fn torn_is_said_until_the_next_resync_sees_what_a_sibling_mended() {
    let mut mended = 0;
    for late in (0..8000).step_by(250) {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Core;
        config.aps = another_map();
        config.aps.pat = Some(Pat::from_raw(0x0007_0406_0007_0401));
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                kernel.start(boot, 2).unwrap();
                kernel.start(boot, 3).unwrap();
                while !kernel.wait_for(boot, 2) {}
                while !kernel.wait_for(boot, 3) {}
                let (two, three) = (outcome(&kernel, 2), outcome(&kernel, 3));
                let on = machine.registers(2).def_type.enabled();
                let torn = matches!(
                    two.error,
                    Some(Error::WriteIgnored {
                        left: Left::Torn,
                        ..
                    })
                );
                if !torn || !on {
                    return;
                }
                mended += 1;
                assert_eq!(three.path, Path::Window, "{late}: {two} / {three}");
                let met = kernel.resync(boot).unwrap();
                assert_eq!((met.cpus, met.out_of_sync), (3, 0), "{late}");
                let two = outcome(&kernel, 2);
                assert_eq!((two.path, two.error), (Path::Pat, None), "{late}");
                assert_cpu(&machine, 2, &firmware_map(), "mended");
            },
            |ap| {
                let me = ap.number();
                let ipis = ap.ipis();
                if me == 2 {
                    ap.work(late);
                    let cpu = &mut Wrapped {
                        cpu: ap,
                        read: |cpu: &mut SimCpu<'_>, msr| cpu.rdmsr(msr),
                        write: |cpu: &mut SimCpu<'_>, msr, value| {
                            let enables = msr == MsrAddr::MTRR_DEF_TYPE
                                && MtrrDefType::from_raw(value).enabled();
                            if enables || msr == MsrAddr::PAT {
                                return Ok(());
                            }
                            unsafe { cpu.wrmsr(msr, value) }
                        },
                    };
                    let _ = kernel.sync.ap_online(cpu, me, |to| ipis.send(to));
                } else {
                    let _ = kernel.sync.ap_online(ap, me, |to| ipis.send(to));
                }
                kernel.signal(me);
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| kernel.interrupt(cpu),
        );
    }
    assert!(mended > 0);
}

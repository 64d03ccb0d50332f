//! Interrupts on an x2APIC: they may overtake the stores they are about, unless the kernel fences
//! before it writes the ICR. A whole life with and without that.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, assert_all_equal, policy};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Machine, MtrrScope, Rule, S3, Scribble, SimCpu};
use mtrr_pat::topology::Place;

/// Whether the kernel fences before it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Fenced,
    AtOnce,
}

fn kick<'run>(cpu: &SimCpu<'run>, sends: Sends) -> impl FnMut(usize) + use<'run> {
    let ipis = cpu.ipis();
    move |to| {
        if sends == Sends::Fenced {
            ipis.fence();
        }
        ipis.send(to);
    }
}

fn bring_up(kernel: &Kernel, boot: &mut SimCpu<'_>, sends: Sends) {
    for ap in 1..boot.machine().config().cpus() {
        let place = Place::Apic(boot.machine().config().apic_id(ap));
        boot.cli();
        unsafe { kernel.sync.starting(boot, ap, place) }.unwrap();
        if sends == Sends::Fenced {
            boot.mfence();
        }
        boot.send_init_sipi(ap);
        boot.sti();
        assert!(kernel.wait_for(boot, ap));
    }
}

/// Boots beside siblings that have to be held, changes the map, sleeps and wakes.
fn live(mode: Resync, scope: MtrrScope, sends: Sends) -> Machine {
    let mut config = Config::new(2, 2);
    config.scope = scope;
    config.aps = another_map();
    config.kicks_overtake_stores = true;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, policy(mode));
            for round in 0..2 {
                if round > 0 {
                    kernel.sleep(boot, &S3::all(Scribble::Zeroed));
                }
                bring_up(&kernel, boot, sends);
                let kick = kick(boot, sends);
                assert_eq!(kernel.sync.resync(boot, 0, kick).unwrap().out_of_sync, 0);
            }
            let (_, mut to) = kernel.sync.target().unwrap();
            to.variable[5] = another_map().variable[0];
            let kick = kick(boot, sends);
            assert_eq!(
                unsafe { kernel.sync.change(boot, 0, &to, kick) }
                    .unwrap()
                    .out_of_sync,
                0
            );
        },
        |ap| {
            let me = ap.number();
            let kick = kick(ap, sends);
            let _ = kernel.sync.ap_online(ap, me, kick);
            kernel.signal(me);
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| kernel.interrupt(cpu),
    );
    assert_all_equal(&machine, "kicked");
    machine
}

#[test]
fn with_a_fence_before_each_no_interrupt_overtakes_anything() {
    for mode in MODES {
        for scope in SCOPES {
            live(mode, scope, Sends::Fenced).check().unwrap();
        }
    }
}

#[test]
fn without_it_interrupts_overtake_what_they_are_about() {
    for mode in MODES {
        let machine = live(mode, MtrrScope::Core, Sends::AtOnce);
        let broken = machine.violations();
        assert!(broken.iter().all(|v| v.rule == Rule::KickOvertakesStore));
        assert!(!broken.is_empty(), "{mode:?}");
    }
}

/// A kick whose first interrupt to each CPU gets lost.
fn lossy<'run>(cpu: &SimCpu<'run>) -> impl FnMut(usize) + use<'run> {
    let (ipis, mut called) = (cpu.ipis(), [false; 4]);
    move |to| {
        if core::mem::replace(&mut called[to], true) {
            ipis.send(to);
        }
    }
}

/// A sibling that is asked to stand still, and a CPU that is
/// called to a rendezvous, is called again at half the bound, and nobody is given up.
#[test]
fn one_lost_kick_delays_and_breaks_nothing() {
    for mode in MODES {
        let mut config = Config::new(2, 2);
        config.scope = MtrrScope::Thread;
        config.aps = another_map();
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        machine.run(
            |boot| {
                kernel.init(boot, policy(mode));
                assert!(kernel.bring_up(boot, &[1, 2, 3]).is_empty());
                if mode == Resync::Early {
                    // CPU 2 was held for CPU 3, which was not postponed.
                    let paths = kernel
                        .sync
                        .report()
                        .cpus()
                        .map(|cpu| cpu.outcome.unwrap().path);
                    assert_eq!(paths.skip(1).collect::<Vec<_>>(), [Path::Window; 3]);
                }
                let kick = lossy(boot);
                let summary = kernel.sync.resync(boot, 0, kick).unwrap();
                assert_eq!((summary.cpus, summary.out_of_sync), (4, 0));
            },
            |ap| {
                let kick = lossy(ap);
                let had = kernel.sync.ap_online(ap, ap.number(), kick).unwrap();
                assert_eq!(had.error, None);
                kernel.signal(ap.number());
                ap.sti();
                while ap.halt_until_ipi() {}
            },
            |cpu| kernel.interrupt(cpu),
        );
        assert_all_equal(&machine, "all were called twice");
        machine.check().unwrap();
    }
}

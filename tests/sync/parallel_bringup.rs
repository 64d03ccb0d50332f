//! All APs are declared, then all are started, and each brings itself in line; one never comes, one was declared with an APIC id that
//! is not its own.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, assert_caching_on, assert_cpu, assert_same, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::{
    At, CR0_RESET, Config, Fault, Machine, MtrrScope, S3, Schedule, Scribble, SimCpu, What,
};
use mtrr_pat::topology::Place;

const CORES: usize = 4;
const SILENT: usize = 3;
const MISPLACED: usize = 6;

fn config(scope: MtrrScope, schedule: Schedule, wrong: bool) -> Config {
    let mut config = Config::new(CORES, 2);
    config.scope = scope;
    config.schedule = schedule;
    config.log = false;
    config.aps = another_map();
    config.ap_cr0 = CR0_RESET;
    if wrong {
        config
            .faults
            .push(Fault::new(SILENT, At::Start, What::Stuck));
    }
    config
}

/// Declares all of these, then starts all; the misplaced one with an id that nobody has.
fn start_all(kernel: &Kernel, boot: &mut SimCpu<'_>, wrong: bool) {
    let aps = 1..2 * CORES;
    boot.cli();
    for ap in aps.clone() {
        kernel.awaits(ap);
        let id = boot.machine().config().apic_id(ap);
        let id = if wrong && ap == MISPLACED { 200 } else { id };
        unsafe { kernel.sync.starting(boot, ap, Place::Apic(id)) }.unwrap();
    }
    for ap in aps {
        boot.send_init_sipi(ap);
    }
    boot.sti();
}

fn bring_up(kernel: &Kernel, boot: &mut SimCpu<'_>, wrong: bool) {
    start_all(kernel, boot, wrong);
    for ap in 1..2 * CORES {
        let came = kernel.wait_for(boot, ap);
        let lost = wrong && (ap == SILENT || ap == MISPLACED);
        assert_eq!(came, !lost, "CPU {ap}");
        if lost {
            unsafe { kernel.sync.offline(ap) }.unwrap();
        }
    }
}

fn ap(kernel: &Kernel, refused: &Word, cpu: &mut SimCpu<'_>) {
    let (me, ipis) = (cpu.number(), cpu.ipis());
    match kernel.sync.ap_online(cpu, me, |sibling| ipis.send(sibling)) {
        Ok(_) => {
            kernel.signal(me);
            cpu.sti();
            while cpu.halt_until_ipi() {}
        }
        // It halts with interrupts off, as the documentation says.
        Err(error) => {
            assert!(matches!(
                error,
                Error::ApicIdDiffers {
                    cpu: MISPLACED,
                    declared: 200,
                    ..
                }
            ));
            refused.store(1, Ordering::Release);
        }
    }
}

fn live(resync: Resync, scope: MtrrScope, schedule: Schedule, wrong: bool) {
    let why = format!("{resync:?} {scope:?} {schedule:?} wrong {wrong}");
    let machine = Machine::new(config(scope, schedule, wrong));
    let mut kernel = Kernel::new();
    kernel.patience = 30_000_000;
    let refused = Word::new(0);
    let missing = usize::from(wrong) * 2;
    machine.run(
        |boot| {
            kernel.init(boot, policy(resync));
            for round in 0..2 {
                if round > 0 {
                    kernel.sleep(boot, &S3::all(Scribble::Reset));
                }
                bring_up(&kernel, boot, wrong);
                let met = kernel.resync(boot).unwrap();
                assert_eq!(
                    (met.cpus as usize, met.out_of_sync),
                    (2 * CORES - missing, 0),
                    "{why}"
                );
                assert_eq!(kernel.sync.online() as usize, 2 * CORES - missing, "{why}");
                let want = machine.registers(0);
                let there = |cpu: &usize| !wrong || (*cpu != SILENT && *cpu != MISPLACED);
                for cpu in (0..2 * CORES).filter(there) {
                    assert_same(&machine.registers(cpu), &want, &why);
                    assert_caching_on(&machine, cpu, &why);
                }
                let out = kernel.sync.report().out_of_sync().count();
                assert_eq!(out, 0, "{why}: {}", kernel.sync.report());
            }
        },
        |cpu| ap(&kernel, &refused, cpu),
        |cpu| kernel.interrupt(cpu),
    );
    assert_eq!(refused.load(Ordering::Acquire), u32::from(wrong), "{why}");
    // A CPU in another place than was said runs beside its sibling's window until it says so: the
    // promise of `starting` was not kept.
    if !wrong {
        (0..2 * CORES).for_each(|cpu| assert_cpu(&machine, cpu, &machine.registers(0), &why));
        machine
            .check()
            .unwrap_or_else(|broken| panic!("{why}: {broken:?}"));
    }
}

fn lives(wrong: bool) {
    for resync in MODES {
        for scope in SCOPES {
            for seed in 0..12 {
                live(resync, scope, Schedule::Baton { seed }, wrong);
            }
        }
    }
}

#[test]
fn all_started_at_once_are_in_line() {
    lives(false);
}

#[test]
fn beside_one_that_never_comes_and_one_misplaced_the_others_are_in_line() {
    lives(true);
}

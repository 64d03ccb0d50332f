//! Fences, locked instructions and interrupts that overtake stores, as the simulated machine tells
//! them apart.

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::{Config, Machine, Op, Rule, SimCpu};

static WORD: Word = Word::new(0);

fn store() {
    WORD.store(1, Ordering::Release);
}

fn lock() {
    let _ = WORD.compare_exchange(1, 2);
}

#[test]
fn fences_are_counted_apart_from_locked_instructions() {
    let mut config = Config::new(1, 1);
    config.log_shared = true;
    let machine = Machine::new(config);
    machine.run(
        |cpu| {
            store();
            cpu.mfence();
            cpu.mfence();
            let _ = WORD.compare_exchange(1, 2);
        },
        |_| {},
        |_| {},
    );
    let counters = machine.counters(0);
    assert_eq!((counters.mfence, counters.locked), (2, 1));
    let done = [Op::SharedStore, Op::Mfence, Op::Mfence, Op::SharedLocked];
    assert_eq!(machine.ops(0), done);
}

/// With its MTRRs off a CPU may fence, and may not lock.
#[test]
fn a_cpu_with_its_mtrrs_off_may_fence() {
    let rules = |code: fn(&mut SimCpu<'_>)| {
        let mut config = Config::new(2, 1);
        config.aps.def_type = config.aps.def_type.disabled();
        let machine = Machine::new(config);
        machine.run(|boot| boot.send_init_sipi(1), code, |_| {});
        let broken = machine.violations();
        broken.iter().map(|v| v.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(|cpu| cpu.mfence()), []);
    let locks = rules(|_| lock());
    assert_eq!(locks, [Rule::LockedWithMtrrsOff]);
}

/// The rules a kick breaks after a store and this.
fn kicked(between: fn(&mut SimCpu<'_>), strict: bool) -> Vec<Rule> {
    let mut config = Config::new(2, 1);
    config.kicks_overtake_stores = strict;
    let machine = Machine::new(config);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            store();
            between(boot);
            boot.send_ipi(1);
        },
        |ap| {
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |_| {},
    );
    machine.violations().iter().map(|v| v.rule).collect()
}

#[test]
fn a_kick_must_not_overtake_what_it_is_about() {
    let kick = |between| kicked(between, true);
    let overtakes = [Rule::KickOvertakesStore];
    assert_eq!(kick(|_| ()), overtakes);
    assert_eq!(kick(|cpu| assert!(cpu.rdtsc() > 0)), overtakes);
    assert_eq!(kick(|cpu| cpu.mfence()), []);
    assert_eq!(kick(|_| lock()), []);
    assert_eq!(kick(|cpu| assert!(cpu.cpuid(0, 0).eax > 0)), []);
    assert_eq!(
        kick(|cpu| assert!(unsafe { cpu.wrmsr(MsrAddr::PAT, 0x0007_0406_0007_0406) }.is_ok())),
        []
    );
    // A store after the fence is late again.
    assert_eq!(
        kick(|cpu| {
            cpu.mfence();
            store();
        }),
        overtakes
    );
    assert_eq!(kicked(|_| (), false), []);
}

#[test]
fn nor_may_a_start() {
    let started = |fence: bool| {
        let mut config = Config::new(2, 1);
        config.kicks_overtake_stores = true;
        let machine = Machine::new(config);
        machine.run(
            |boot| {
                store();
                if fence {
                    boot.mfence();
                }
                boot.send_init_sipi(1);
            },
            |_| {},
            |_| {},
        );
        machine.violations().len()
    };
    assert_eq!((started(false), started(true)), (1, 0));
}

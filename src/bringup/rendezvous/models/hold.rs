//! Threads of one core: nobody runs while a sibling has the caches off.

use std::sync::Arc;

use super::*;
use crate::atomic::Ordering;

/// Runs, asks, opens its window, and runs on.
pub(super) fn ask<const CPUS: usize>(
    machine: &Machine<CPUS>,
    cpu: &mut Cpu,
    me: usize,
    bounds: Ticks,
) -> Result<(), Error> {
    let peers = machine.peers(me, &bounds);
    machine.caches(me).used();
    let answer = peers.enter(cpu, |_| ());
    if answer.is_ok() {
        machine.caches(me).taken();
        peers.leave();
    }
    machine.caches(me).used();
    answer
}

/// Runs, and looks `looks` times whether it is asked.
pub(super) fn answer<const CPUS: usize>(
    machine: &Machine<CPUS>,
    cpu: &mut Cpu,
    me: usize,
    bounds: Ticks,
    looks: u32,
) -> bool {
    for _ in 0..looks {
        machine.caches(me).used();
        let how = machine.peers(me, &bounds).hold_point(cpu);
        assert_eq!(how, Ok(()));
        assert!(!cpu.masked);
    }
    let times = machine.slots[me].record.holds.load(Ordering::Relaxed);
    machine.caches(me).used();
    times > 0
}

/// Nobody asks and nobody is held.
fn at_rest<const CPUS: usize>(machine: &Machine<CPUS>) {
    for slot in &machine.slots {
        assert_eq!(slot.handshake.request.load(Ordering::Relaxed) & 0b11, 0);
        assert_eq!(slot.handshake.ack.load(Ordering::Relaxed), 0);
    }
}

/// CPU 1 asks and looks `patience + 1` times for the answer; CPU 0 looks twice for requests, and
/// when held stays for `stamina` looks. Returns (asked: granted, held).
fn one_asks(name: &str, patience: u64, stamina: u64, looks: u32) -> BTreeSet<String> {
    outcomes(name, None, move || {
        let machine = Machine::running([0, 0]);
        let asking = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || {
                let mut cpu = Cpu::default();
                ask(&machine, &mut cpu, 1, polls(0, patience, NEVER))
            }
        });
        let mut cpu = Cpu::default();
        let held = answer(&machine, &mut cpu, 0, polls(0, stamina, NEVER), looks);
        let granted = asking.join().unwrap();
        at_rest(&machine);
        (granted, held)
    })
}

#[test]
fn a_requester_gives_up_while_its_sibling_answers() {
    for patience in 0..=1 {
        let seen = one_asks("requester gives up", patience, NEVER, 1);
        assert_eq!(seen, all_but_granted_unheld());
    }
    // The checker does not try to give up after the third look while CPU 0 is on its way.
    let seen = one_asks("requester patient", 2, NEVER, 1);
    assert!(seen.is_subset(&all_but_granted_unheld()) && seen.len() > 1);
    let seen = one_asks("requester gives up, asked twice", 1, NEVER, 2);
    assert_eq!(seen, all_but_granted_unheld());
}

#[test]
fn a_held_sibling_grows_tired_while_the_requester_enters() {
    let seen = one_asks("sibling tired", 0, 0, 1);
    assert_eq!(seen, all_but_granted_unheld());
}

/// A sibling that runs is never passed over.
fn all_but_granted_unheld() -> BTreeSet<String> {
    set([
        "(Err(SiblingsNotHeld { cpu: 0 }), false)",
        "(Err(SiblingsNotHeld { cpu: 0 }), true)",
        "(Ok(()), true)",
    ])
}

/// CPU 1 asks with a look to spare, and CPU 0 answers from the kick on. CPU 1's window changes the
/// memory types. Returns (granted, held).
fn answered_from_the_kick(
    name: &str,
    preemptions: Option<usize>,
    stamina: u64,
) -> BTreeSet<String> {
    outcomes(name, preemptions, move || {
        let machine = Machine::running([0, 0]);
        let types = Arc::new(Word::new(0));
        let mut answering = None;
        let kick = |_| {
            if answering.is_some() {
                return;
            }
            let (machine, types) = (Arc::clone(&machine), Arc::clone(&types));
            answering = Some(loom::thread::spawn(move || {
                let mut cpu = Cpu {
                    types: Some(Arc::clone(&types)),
                    ..Cpu::default()
                };
                let held = answer(&machine, &mut cpu, 0, polls(0, stamina, NEVER), 1);
                let now = types.load(Ordering::Relaxed);
                assert_eq!(cpu.tlb, now, "runs on types of before the window");
                held
            }));
        };
        let cpu = &mut Cpu::default();
        let bounds = polls(0, 1, NEVER);
        let peers = machine.peers(1, &bounds);
        let granted = peers.enter(cpu, kick);
        if granted.is_ok() {
            machine.slots[1].handshake.windows.open(false);
            machine.caches(1).taken();
            types.store(1, Ordering::Relaxed);
            peers.leave();
        }
        (granted, answering.unwrap().join().unwrap())
    })
}

#[test]
fn a_sibling_that_was_held_has_no_translation_from_before_the_window() {
    let seen = answered_from_the_kick("held and flushed", None, NEVER);
    assert_eq!(seen, all_but_granted_unheld());
}

#[test]
fn a_tired_sibling_has_no_translation_from_before_the_window() {
    let seen = answered_from_the_kick("tired and flushed", Some(5), 0);
    assert_eq!(seen, all_but_granted_unheld());
}

/// Both threads of a core answer once, ask, and are parked.
fn both_ask(name: &str, patience: u64) -> BTreeSet<String> {
    outcomes(name, None, move || {
        let machine = Machine::running([0, 0]);
        let comes_up = move |machine: &Machine<2>, me: usize| {
            let cpu = &mut Cpu::default();
            let bounds = polls(0, patience, NEVER);
            answer(machine, cpu, me, polls(0, NEVER, NEVER), 1);
            let granted = ask(machine, cpu, me, bounds);
            machine.slots[me].set_state(CpuState::Parked);
            granted.is_ok()
        };
        let second = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || comes_up(&machine, 1)
        });
        let first = comes_up(&machine, 0);
        let second = second.join().unwrap();
        at_rest(&machine);
        (first, second)
    })
}

#[test]
fn two_threads_of_a_core_that_start_together_go_one_after_the_other() {
    assert_eq!(
        both_ask("both ask, patiently", NEVER),
        set(["(true, true)"])
    );
}

#[test]
fn of_two_impatient_threads_of_a_core_each_may_give_up() {
    let seen = both_ask("both ask, impatiently", 0);
    assert_eq!(
        seen,
        set([
            "(false, false)",
            "(false, true)",
            "(true, false)",
            "(true, true)"
        ])
    );
}

#[test]
fn a_third_thread_stands_still_for_two_that_ask() {
    for (stamina, preemptions) in [(0, 2), (NEVER, 1)] {
        let seen = outcomes("third thread", Some(preemptions), move || {
            let machine = Machine::running([0, 0, 0]);
            let asks = |me: usize| {
                let machine = Arc::clone(&machine);
                loom::thread::spawn(move || {
                    let cpu = &mut Cpu::default();
                    if me == 0 {
                        // It may take its word to CPU 1 back in order to ask itself.
                        answer(&machine, cpu, 0, polls(0, stamina, NEVER), 1);
                    }
                    let granted = ask(&machine, cpu, me, polls(0, NEVER, NEVER));
                    machine.slots[me].set_state(CpuState::Parked);
                    granted
                })
            };
            let threads = [asks(0), asks(1)];
            let mut cpu = Cpu::default();
            answer(&machine, &mut cpu, 2, polls(0, stamina, NEVER), 1);
            machine.slots[2].set_state(CpuState::Parked);
            let granted = threads.map(|thread| thread.join().unwrap().is_ok());
            at_rest(&machine);
            granted
        });
        assert_eq!(seen, set(["[true, true]"]));
    }
}

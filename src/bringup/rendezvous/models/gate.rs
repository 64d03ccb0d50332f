//! Gather, commit, release.

use std::sync::Arc;

use super::hold::ask;
use super::*;

/// CPU 0 leads, CPU 1 on another core attends `looks` times; returns how the rendezvous went and
/// what CPU 1 got each time.
fn two_meet(name: &str, leader: Ticks, looks: usize) -> BTreeSet<String> {
    outcomes(name, None, move || {
        let machine = Machine::running([0, 1]);
        let attending = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || {
                let cpu = &mut Cpu::default();
                let mut how = Vec::new();
                for _ in 0..looks {
                    machine.runs(1);
                    how.push(machine.attend(cpu, 1, polls(0, 0, NEVER)));
                    machine.runs(1);
                }
                how
            }
        });
        let cpu = &mut Cpu::default();
        machine.runs(0);
        let (led, stepped) = machine.lead(cpu, 0, leader, |_| ());
        machine.runs(0);
        let how = attending.join().unwrap();
        let done = how
            .iter()
            .filter(|how| **how == Ok(Attendance::Done))
            .count();
        assert_eq!((stepped, done), (led.is_ok(), usize::from(led.is_ok())));
        assert!(!machine.gate.open());
        (led.map(|late| late.count), how)
    })
}

const MISSING: &str = "Err(Missing { count: 1, first: 1 })";

fn with_missing<const N: usize, const M: usize>(
    how: [&str; N],
    others: [&str; M],
) -> BTreeSet<String> {
    let missing = how.map(|how| format!("({MISSING}, [{how}])"));
    missing.into_iter().chain(set(others)).collect()
}

#[test]
fn a_gathering_that_times_out_changes_nothing_and_one_that_does_not_changes_all() {
    for patience in 0..=2 {
        let seen = two_meet("gather", polls(patience, 0, NEVER), 1);
        assert_eq!(
            seen,
            with_missing(["Ok(NotNow)", "Ok(CalledOff)"], ["(Ok(0), [Ok(Done)])"])
        );
    }
}

/// CPU 1 attends twice from its first kick on, while CPU 0 leads a rendezvous per entry of `patience`.
fn kicked(name: &str, preemptions: Option<usize>, patience: &'static [u64]) -> BTreeSet<String> {
    outcomes(name, preemptions, move || {
        let machine = Machine::running([0, 1]);
        let attends = {
            let machine = Arc::clone(&machine);
            move || {
                let cpu = &mut Cpu::default();
                [(); 2].map(|()| {
                    machine.runs(1);
                    let how = machine.attend(cpu, 1, polls(0, 0, NEVER));
                    machine.runs(1);
                    how
                })
            }
        };
        let mut attends = Some(attends);
        let mut attending = None;
        let mut led = Vec::new();
        let cpu = &mut Cpu::default();
        for patience in patience {
            let (result, stepped) = machine.lead(cpu, 0, polls(*patience, 0, NEVER), |_| {
                if let Some(attends) = attends.take() {
                    attending = Some(loom::thread::spawn(attends));
                }
            });
            machine.runs(0);
            assert_eq!(stepped, result.is_ok());
            led.push(stepped);
        }
        let how = attending.unwrap().join().unwrap();
        let done = how
            .iter()
            .filter(|how| **how == Ok(Attendance::Done))
            .count();
        assert_eq!(done, led.iter().filter(|led| **led).count());
        (led, how)
    })
}

#[test]
fn a_cpu_that_is_late_for_one_rendezvous_attends_the_next() {
    let seen = kicked("late", Some(3), &[0, 0]);
    assert_eq!(
        seen,
        set([
            "([false, false], [Ok(CalledOff), Ok(CalledOff)])",
            "([false, false], [Ok(CalledOff), Ok(NotNow)])",
            "([false, false], [Err(Stuck { count: 1, first: 1 }), Ok(CalledOff)])",
            "([false, false], [Err(Stuck { count: 1, first: 1 }), Ok(NotNow)])",
            "([false, false], [Ok(NotNow), Ok(CalledOff)])",
            "([false, false], [Ok(NotNow), Ok(NotNow)])",
            "([false, true], [Ok(CalledOff), Ok(Done)])",
            "([false, true], [Ok(Done), Ok(NotNow)])",
            "([false, true], [Err(Stuck { count: 1, first: 1 }), Ok(Done)])",
            "([false, true], [Ok(NotNow), Ok(Done)])",
            "([true, false], [Ok(Done), Ok(CalledOff)])",
            "([true, false], [Ok(Done), Ok(NotNow)])",
            "([true, true], [Ok(Done), Ok(Done)])",
        ])
    );
}

/// Two threads of a core, which may be known; `leader` leads, and waits for a turn as long as
/// `patience` says.
fn two_threads_meet(name: &str, leader: usize, patience: u64, known: bool) -> BTreeSet<String> {
    outcomes(name, None, move || {
        let machine = if known {
            Machine::running([0, 0])
        } else {
            let machine = Machine::of_unknown_places([0, 0]);
            machine.declared.set_unplaced(true);
            Arc::new(machine)
        };
        let member = 1 - leader;
        let bounds = polls(NEVER, NEVER, patience);
        let mut attending = None;
        let cpu = &mut Cpu::default();
        machine.runs(leader);
        let (led, stepped) = machine.lead(cpu, leader, bounds, |_| {
            if attending.is_some() {
                return;
            }
            let machine = Arc::clone(&machine);
            attending = Some(loom::thread::spawn(move || {
                machine.runs(member);
                let how = machine.attend(&mut Cpu::default(), member, bounds);
                if patience == NEVER {
                    machine.runs(member);
                }
                how
            }));
        });
        let stuck = led.unwrap();
        match (stuck.count, stepped) {
            (0, _) => machine.runs(leader),
            (1, true) => assert_eq!(stuck.first, member),
            (1, false) => assert_eq!(stuck.first, leader),
            _ => assert_eq!(stuck.first, 0),
        }
        let how = attending.unwrap().join().unwrap();
        (stuck.count, stepped, how)
    })
}

#[test]
fn threads_of_a_core_act_in_turn() {
    for leader in 0..=1 {
        for known in [true, false] {
            let seen = two_threads_meet("in turn", leader, NEVER, known);
            assert_eq!(seen, set(["(0, true, Ok(Done))"]));
        }
    }
}

#[test]
fn a_thread_whose_sibling_does_not_finish_leaves_its_registers_alone() {
    let seen = two_threads_meet("sibling slow", 0, 0, true);
    assert_eq!(
        seen,
        set([
            "(0, true, Ok(Done))",
            "(0, true, Err(SiblingStuck { cpu: 0 }))",
            "(1, true, Ok(Done))",
            "(1, true, Err(Stuck { count: 1, first: 1 }))",
            "(1, true, Err(SiblingStuck { cpu: 0 }))",
        ])
    );
    let seen = two_threads_meet("sibling slow", 1, 0, true);
    assert_eq!(
        seen,
        set([
            "(0, true, Ok(Done))",
            "(1, false, Ok(Done))",
            "(2, false, Ok(Done))",
            "(2, false, Err(Stuck { count: 1, first: 0 }))",
        ])
    );
}

/// CPU 0 leads CPUs 1 and 2, threads of a core, which come when they are kicked; CPU 2 may have a
/// window of its own first. Schedules branch until a CPU has polled `polled` times. Returns the leader's result and the members', with what 2 was told.
fn three_meet(name: &str, polled: u64, window: bool) -> BTreeSet<String> {
    outcomes(name, Some(2), move || {
        let machine = Machine::running([0, 1, 1]);
        let bounds = polls(NEVER, 1, NEVER);
        let branching = Arc::new(AtomicBool::new(true));
        let among_three = move || Cpu {
            branching: Some((polled, Arc::clone(&branching))),
            ..Cpu::default()
        };
        let mut threads = Vec::new();
        let cpu = &mut among_three();
        machine.runs(0);
        let (led, stepped) = machine.lead(cpu, 0, bounds, |me| {
            let machine = Arc::clone(&machine);
            let mut cpu = among_three();
            threads.push(loom::thread::spawn(move || {
                let cpu = &mut cpu;
                let granted = (window && me == 2).then(|| ask(&machine, cpu, 2, bounds).is_ok());
                machine.runs(me);
                let how = machine.attend(cpu, me, bounds);
                machine.runs(me);
                (how, granted)
            }));
        });
        machine.runs(0);
        assert!(stepped);
        let members: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        (led.unwrap().count, members)
    })
}

#[test]
fn the_whole_gate() {
    let seen = three_meet("whole gate", 4, false);
    assert_eq!(seen, set(["(0, [(Ok(Done), None), (Ok(Done), None)])"]));
}

#[test]
fn the_whole_gate_with_an_early_window_on_the_way() {
    let seen = three_meet("whole gate, early window", 3, true);
    assert_eq!(
        seen,
        set([
            "(0, [(Ok(Done), None), (Ok(Done), Some(false))])",
            "(0, [(Ok(Done), None), (Ok(Done), Some(true))])",
        ])
    );
}

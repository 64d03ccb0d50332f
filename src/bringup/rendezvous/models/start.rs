//! A CPU that is being started, against what may be open then.

use std::sync::Arc;

use super::hold::{answer, ask};
use super::*;
use crate::rendezvous::admit::admit;

#[test]
fn a_cpu_started_during_a_siblings_window_waits_for_its_end() {
    for (patience, tries) in [(0, 0), (0, 1)] {
        let seen = outcomes("started in a window", None, move || {
            let machine = Machine::running([0, 0]);
            machine.slots[0].set_state(CpuState::Absent);
            let asking = loom::thread::spawn({
                let machine = Arc::clone(&machine);
                move || ask(&machine, &mut Cpu::default(), 1, polls(0, patience, NEVER))
            });
            let cpu = &mut Cpu::default();
            let bounds = polls(0, 0, tries);
            let admitted = admit(&machine.gate, machine.peers(0, &bounds), cpu);
            if admitted.is_ok() {
                answer(&machine, cpu, 0, polls(0, NEVER, NEVER), 1);
            }
            (admitted, asking.join().unwrap())
        });
        assert_eq!(
            seen,
            set([
                // The window was about to open, and was given up for the CPU that was coming.
                "(Err(SiblingStuck { cpu: 1 }), Err(SiblingsNotHeld { cpu: 0 }))",
                "(Err(SiblingStuck { cpu: 1 }), Ok(()))",
                "(Ok(()), Err(SiblingsNotHeld { cpu: 0 }))",
                "(Ok(()), Ok(()))",
            ])
        );
    }
}

/// CPU 0 sits on the core of CPU 1, which nobody knows: it is in no ring.
#[test]
fn a_cpu_of_unknown_place_and_any_window_exclude_each_other() {
    let seen = outcomes("started anywhere", None, move || {
        let machine = Machine::of_unknown_places([0, 0]);
        machine.slots[0].set_state(CpuState::Absent);
        let machine = Arc::new(machine);
        let asking = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || ask(&machine, &mut Cpu::default(), 1, polls(0, 0, NEVER))
        });
        let cpu = &mut Cpu::default();
        machine.declared.set_unplaced(true);
        let bounds = polls(0, 0, 0);
        let admitted = admit(&machine.gate, machine.peers(0, &bounds), cpu);
        if admitted.is_ok() {
            machine.runs(0);
        }
        (admitted, asking.join().unwrap())
    });
    assert_eq!(
        seen,
        set([
            // From the moment a place is not known everybody may be a sibling.
            "(Err(SiblingStuck { cpu: 1 }), Err(SiblingsNotHeld { cpu: 0 }))",
            "(Err(SiblingStuck { cpu: 1 }), Err(TopologyUnknown))",
            "(Err(SiblingStuck { cpu: 1 }), Ok(()))",
            "(Ok(()), Err(SiblingsNotHeld { cpu: 0 }))",
            "(Ok(()), Err(TopologyUnknown))",
            "(Ok(()), Ok(()))",
        ])
    );
}

#[test]
fn a_cpu_started_during_a_rendezvous_is_counted_or_kept_out() {
    for patience in [0, 1] {
        let seen = outcomes("started in a rendezvous", None, move || {
            let machine = Machine::running([0, 1]);
            machine.slots[1].set_state(CpuState::Absent);
            let starting = loom::thread::spawn({
                let machine = Arc::clone(&machine);
                move || {
                    let cpu = &mut Cpu::default();
                    let bounds = polls(0, 0, 0);
                    let admitted = admit(&machine.gate, machine.peers(1, &bounds), cpu);
                    let mut attended = Ok(Attendance::NotNow);
                    if admitted.is_ok() {
                        machine.runs(1);
                        attended = machine.attend(cpu, 1, polls(NEVER, 0, NEVER));
                        machine.runs(1);
                    }
                    (admitted, attended)
                }
            });
            let cpu = &mut Cpu::default();
            let (led, _) = machine.lead(cpu, 0, polls(patience, 0, NEVER), |_| ());
            machine.runs(0);
            let (admitted, attended) = starting.join().unwrap();
            assert_eq!(
                attended == Ok(Attendance::Done),
                led.is_ok() && attended != Ok(Attendance::NotNow)
            );
            (led.map(|_| ()).map_err(|_| "missing"), admitted, attended)
        });
        assert_eq!(
            seen,
            set([
                // Both went back: the CPU for the rendezvous, the rendezvous for the CPU.
                "(Err(\"missing\"), Err(Busy), Ok(NotNow))",
                "(Err(\"missing\"), Ok(()), Ok(CalledOff))",
                "(Err(\"missing\"), Ok(()), Ok(NotNow))",
                "(Ok(()), Err(Busy), Ok(NotNow))",
                "(Ok(()), Ok(()), Ok(Done))",
                "(Ok(()), Ok(()), Ok(NotNow))",
            ])
        );
    }
}

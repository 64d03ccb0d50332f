//! The target is replaced: while somebody reads it who does not have to, and never while a CPU reads
//! it that comes online by itself. That one may not meet is in the models of the start.

use std::sync::Arc;

use super::*;
use crate::atomic::Ordering;
use crate::rendezvous::target::Target;

#[test]
fn who_reads_while_it_is_replaced_sees_one_target_or_that_it_moved() {
    let seen = outcomes("read while replaced", None, || {
        let target = Arc::new(Target::<2>::new());
        target.replace(&[1, 1]);
        let reading = loom::thread::spawn({
            let target = Arc::clone(&target);
            move || {
                let epoch = target.epoch();
                let words: Vec<u64> = target.words().collect();
                let kept = epoch != 0 && target.epoch() == epoch;
                assert!(!kept || words == [u64::from(epoch); 2], "a mixture");
                kept.then_some(epoch)
            }
        });
        assert_eq!(target.replace(&[2, 2]), 2);
        reading.join().unwrap()
    });
    assert_eq!(seen, set(["None", "Some(1)", "Some(2)"]));
}

/// On the way to sleep the boot CPU replaces it unless a CPU is starting.
#[test]
fn a_cpu_that_is_up_has_read_it() {
    let seen = outcomes("replaced before sleep", None, || {
        let machine = Machine::running([0, 1]);
        let slot = &machine.slots[1];
        slot.set_state(CpuState::Starting);
        let coming = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || {
                machine.map.used();
                machine.slots[1].set_state(CpuState::Running);
            }
        });
        let starting = slot.state() == CpuState::Starting;
        if !starting {
            machine.map.taken();
        }
        coming.join().unwrap();
        starting
    });
    assert_eq!(seen, set(["true", "false"]));
}

/// A CPU that has read it says which one it holds before it is up, so the next rendezvous knows.
#[test]
fn what_a_cpu_holds_is_known_when_it_is_up() {
    let seen = outcomes("counted", None, || {
        let machine = Machine::running([0, 1]);
        let slot = &machine.slots[1];
        slot.set_state(CpuState::Starting);
        let coming = loom::thread::spawn({
            let machine = Arc::clone(&machine);
            move || {
                let slot = &machine.slots[1];
                slot.record.epoch.store(7, Ordering::Relaxed);
                slot.set_state(CpuState::Running);
            }
        });
        let up = slot.state() == CpuState::Running;
        let holds = slot.record.epoch.load(Ordering::Relaxed);
        assert!(!up || holds == 7);
        coming.join().unwrap();
        up
    });
    assert_eq!(seen, set(["true", "false"]));
}

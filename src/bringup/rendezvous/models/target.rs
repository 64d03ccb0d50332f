//! The target is replaced while CPUs copy it and come online.

use std::sync::Arc;

use super::*;
use crate::rendezvous::target::{Moved, Target, Words};

/// A target of two words, `[1, 1]` in epoch 1, held by `online` CPUs.
fn target(online: u32) -> Arc<Target<2>> {
    let target = Target::new();
    let cpu = &mut Cpu::default();
    target.replace(cpu, &[1, 1], target.online()).unwrap();
    target.recount(1);
    for _ in 1..online {
        target.join(1).unwrap();
    }
    Arc::new(target)
}

/// Copies the target and comes online with it, at most `times`; returns the word it holds then.
fn come_online(target: &Target<2>, patience: u64, times: u32) -> Result<u64, &'static str> {
    let cpu = &mut Cpu::default();
    for _ in 0..times {
        let mut words = [0; 2];
        let take = |_: &mut Cpu, from: Words<'_>| {
            let pairs = words.iter_mut().zip(from);
            pairs.for_each(|(to, word)| *to = word);
        };
        let epoch = target.read(cpu, patience, take).ok_or("busy")?;
        assert_eq!(words[0], words[1], "a copy of two targets");
        if target.join(epoch).is_ok() {
            assert_eq!(
                words[0],
                u64::from(epoch),
                "online with another epoch's words"
            );
            return Ok(words[0]);
        }
    }
    Err("moved")
}

/// The boot CPU replaces the target `changes` times, unless somebody came online; returns how
/// often it could, and what the CPU that came online has.
fn replaced(
    name: &str,
    preemptions: Option<usize>,
    patience: u64,
    changes: u32,
) -> BTreeSet<String> {
    outcomes(name, preemptions, move || {
        let target = target(1);
        let mut seen = target.online();
        let coming = loom::thread::spawn({
            let target = Arc::clone(&target);
            move || come_online(&target, patience, changes + 1)
        });
        let cpu = &mut Cpu::default();
        for _ in 0..changes {
            let words = [u64::from(seen.epoch()) + 1; 2];
            // The CPU that comes must not count as seen: the boot CPU does not look again.
            match target.replace(cpu, &words, seen) {
                Ok(epoch) => seen = seen.moved_to(epoch),
                Err(Moved) => break,
            }
        }
        let held = coming.join().unwrap();
        let now = target.online();
        assert_eq!(now.epoch(), seen.epoch());
        assert_eq!(now.count(), 1 + u32::from(held.is_ok()));
        assert!(held.is_err() || held == Ok(u64::from(now.epoch())));
        held
    })
}

#[test]
fn a_target_replaced_between_copy_and_online_is_copied_again() {
    let seen = replaced("replaced once", None, NEVER, 1);
    assert_eq!(seen, set(["Ok(1)", "Ok(2)"]));
    let seen = replaced("replaced twice", Some(3), NEVER, 2);
    assert_eq!(seen, set(["Ok(1)", "Ok(2)", "Ok(3)"]));
}

#[test]
fn a_target_that_is_being_written_for_too_long_is_given_up() {
    let seen = replaced("busy", None, 0, 1);
    assert_eq!(seen, set(["Ok(1)", "Ok(2)", "Err(\"busy\")"]));
}

#[test]
fn cpus_that_come_and_go_are_counted_and_stop_a_change() {
    let seen = outcomes("come and go", None, || {
        let target = target(2);
        let seen = target.online();
        let coming = loom::thread::spawn({
            let target = Arc::clone(&target);
            move || target.join(1)
        });
        let going = loom::thread::spawn({
            let target = Arc::clone(&target);
            move || target.part()
        });
        let replaced = target.replace(&mut Cpu::default(), &[2, 2], seen);
        let joined = coming.join().unwrap();
        going.join().unwrap();
        let now = target.online();
        assert_eq!(now.count(), 1 + u32::from(joined.is_ok()));
        assert_eq!(replaced.is_ok(), now.epoch() == 2);
        (replaced.is_ok(), joined.is_ok())
    });
    assert_eq!(seen, set(["(false, true)", "(true, false)"]));
}

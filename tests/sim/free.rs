//! Threads that run as they like: the machine's time, not the host's.

use std::time::Duration;

use super::nothing;
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::sim::{At, Config, Fault, Machine, S3, Schedule, Scribble, SimCpu, Stop, What};

fn free(cpus: usize) -> Config {
    let mut config = Config::new(cpus, 1);
    config.schedule = Schedule::Free { seed: 0 };
    config
}

/// The host has no time for this CPU's thread.
fn neglected() {
    std::thread::sleep(Duration::from_millis(30));
}

/// Waits at most this many ticks; returns how many it were.
fn wait(cpu: &mut SimCpu<'_>, word: &Word, ticks: u64) -> u64 {
    let begin = cpu.rdtsc();
    while word.load(Ordering::Acquire) == 0 && cpu.rdtsc() < begin + ticks {
        cpu.pause_while(word, 0, begin + ticks);
    }
    cpu.rdtsc() - begin
}

#[test]
fn a_deadline_ends_a_wait_for_a_cpu_that_is_stuck() {
    let mut config = free(2);
    config.faults.push(Fault::new(1, At::Op(1), What::Stuck));
    let machine = Machine::new(config);
    let word = Word::new(0);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            // Half an hour.
            let waited = wait(boot, &word, 1_800_000_000_000);
            assert!((1_800_000_000_000..1_800_000_100_000).contains(&waited));
        },
        |ap| {
            ap.rdtsc();
            word.store(1, Ordering::Release);
        },
        nothing,
    );
    assert_eq!(word.load(Ordering::Acquire), 0);
}

#[test]
fn a_cpu_the_host_neglects_is_not_late() {
    let machine = Machine::new(free(2));
    let word = Word::new(0);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            let waited = wait(boot, &word, 100_000);
            assert!(waited < 100_000, "{waited}");
            assert_eq!(word.load(Ordering::Acquire), 1);
        },
        |_| {
            neglected();
            word.store(1, Ordering::Release);
        },
        nothing,
    );
}

#[test]
fn a_late_cpu_is_as_late_as_told() {
    let mut config = free(2);
    let late = |at| Fault::new(1, at, What::Delay(3_000_000_000));
    config.faults = vec![late(At::Start), late(At::Op(1))];
    let machine = Machine::new(config);
    let word = Word::new(0);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            let waited = wait(boot, &word, 100_000_000);
            assert!((9_000_000..10_000_000).contains(&waited), "{waited}");
        },
        |ap| {
            ap.rdtsc();
            let now = ap.machine().time(1);
            ap.wait_until(now + 3_000_000_000);
            word.store(1, Ordering::Release);
        },
        nothing,
    );
}

#[test]
fn any_store_ends_a_pause_or_keeps_it_from_beginning() {
    for first in ["pause", "store"] {
        let machine = Machine::new(free(2));
        let (word, other) = (Word::new(0), Word::new(0));
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                while other.load(Ordering::Acquire) == 0 {
                    if first == "store" {
                        neglected();
                    }
                    boot.pause_while(&word, 0, u64::MAX);
                }
            },
            |_| {
                if first == "pause" {
                    neglected();
                }
                other.store(1, Ordering::Release);
            },
            nothing,
        );
    }
}

#[test]
fn an_interrupt_ends_a_pause_and_a_halt() {
    let machine = Machine::new(free(2));
    let (up, taken) = (Word::new(0), Word::new(0));
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            for round in 1..=2 {
                while up.load(Ordering::Acquire) != round {
                    boot.pause_while(&up, round - 1, u64::MAX);
                }
                neglected();
                boot.send_ipi(1);
                while taken.load(Ordering::Acquire) != round {
                    boot.pause_while(&taken, round - 1, u64::MAX);
                }
            }
        },
        |ap| {
            ap.sti();
            up.store(1, Ordering::Release);
            let never = Word::new(0);
            while taken.load(Ordering::Acquire) == 0 {
                ap.pause_while(&never, 0, u64::MAX);
            }
            up.store(2, Ordering::Release);
            while ap.halt_until_ipi() {}
        },
        |_| taken.store(taken.load(Ordering::Acquire) + 1, Ordering::Release),
    );
}

#[test]
fn aps_about_to_halt_do_so_before_the_machine_sleeps() {
    let machine = Machine::new(free(3));
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            boot.send_init_sipi(2);
            boot.s3(&S3::all(Scribble::Kept));
        },
        |ap| {
            neglected();
            while ap.halt_until_ipi() {}
        },
        nothing,
    );
    machine.check().unwrap();
}

#[test]
fn deadlock_is_an_end_not_a_hang() {
    let machine = Machine::new(free(2));
    let word = Word::new(5);
    let stop = machine.try_run(
        |boot| {
            boot.send_init_sipi(1);
            while word.load(Ordering::Acquire) == 5 {
                boot.pause_while(&word, 5, u64::MAX);
            }
        },
        |ap| while ap.halt_until_ipi() {},
        nothing,
    );
    let Err(Stop::Deadlock(text)) = stop else {
        panic!("{stop:?}")
    };
    assert!(text.contains("tests/sim/free.rs"), "{text}");
}

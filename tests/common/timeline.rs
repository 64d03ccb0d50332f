//! Caches-off windows, read from the event list.

use mtrr_pat::cpu::CR0_CD;
use mtrr_pat::sim::{Machine, Op};

/// One caches-off window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub cpu: usize,
    pub core: usize,
    /// Picoseconds; when CD was set and cleared.
    pub start: u64,
    pub end: u64,
}

impl Window {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Every time a CPU set CR0.CD and cleared it again; a CPU that is stuck never ends its window.
pub fn windows(machine: &Machine) -> Vec<Window> {
    let config = machine.config();
    let mut found: Vec<Window> = Vec::new();
    for cpu in 0..config.cpus() {
        let mut start = None;
        let events = machine
            .events()
            .into_iter()
            .filter(|event| event.cpu == cpu);
        let mut closed = |start: u64, end: u64| {
            found.push(Window {
                cpu,
                core: config.place(cpu).0,
                start,
                end,
            });
        };
        for event in events {
            match (event.op, start) {
                (Op::Cr0(value), None) if value & CR0_CD != 0 => start = Some(event.time),
                (Op::Cr0(value), Some(since)) if value & CR0_CD == 0 => {
                    closed(since, event.time);
                    start = None;
                }
                _ => {}
            }
        }
        if let Some(since) = start {
            closed(since, u64::MAX);
        }
    }
    found.sort_by_key(|window| window.start);
    found
}

/// The most windows that some core had one after the other.
pub fn most_in_series(windows: &[Window]) -> usize {
    let of_core = |core| windows.iter().filter(|window| window.core == core).count();
    windows
        .iter()
        .map(|window| of_core(window.core))
        .max()
        .unwrap_or(0)
}

/// Checks that no two windows of one core overlap, and that those of different cores do.
pub fn assert_cores_in_parallel_threads_in_turn(windows: &[Window]) {
    for (n, one) in windows.iter().enumerate() {
        for other in &windows[n + 1..] {
            assert!(
                one.core != other.core || !one.overlaps(other),
                "{one:?} {other:?}"
            );
        }
    }
    for one in windows {
        let beside = windows
            .iter()
            .any(|other| other.core != one.core && one.overlaps(other));
        assert!(beside, "no other core acts beside {one:?}");
    }
}

//! Two threads that write to words of their own: in lines of 128 bytes each, as this crate's
//! per-CPU slots lie, against packed into one line.
//!
//! Only stretches in which both threads ran count, so that a busy computer does not hide the
//! effect. With one processor there are none.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::side_by_side::Table;

/// Writes in a stretch.
const WRITES: u32 = 2_000;
/// How long a round lasts: several turns of the scheduler, should the computer be busy.
const ROUND: Duration = Duration::from_millis(500);
const ROUNDS: usize = 4;
/// Nanoseconds per write that only a thread that was put aside takes.
const INTERRUPTED: f64 = 500.0;

#[repr(align(128))]
struct Line([AtomicU64; 16]);

impl Line {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 16])
    }
}

pub fn rows(_: &mut Table) {
    let lines = [const { Line::new() }; 2];
    let (mut apart, mut packed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        apart.extend(both([&lines[0].0[0], &lines[1].0[0]]));
        packed.extend(both([&lines[0].0[0], &lines[0].0[1]]));
    }
    let what = "2 threads, 1 write to an own word, packed";
    match (median(&mut apart), median(&mut packed)) {
        (Some(apart), Some(packed)) => println!(
            "  {what:<46} {:>10} {:>10} {:>9.2}",
            format!("{apart:.2} ns"),
            format!("{packed:.2} ns"),
            packed / apart
        ),
        _ => println!("  {what:<46} the two threads never ran at the same time"),
    }
}

/// Nanoseconds per write of every stretch in which the other thread got on about as far.
fn both(words: [&AtomicU64; 2]) -> Vec<f64> {
    let ready = AtomicUsize::new(0);
    let done = [const { Line::new() }; 2];
    let write = |me: usize| {
        let mut times = Vec::new();
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < 2 {
            std::thread::yield_now();
        }
        let begin = Instant::now();
        for stretch in 1.. {
            if begin.elapsed() > ROUND {
                break;
            }
            let other = done[1 - me].0[0].load(Ordering::Acquire);
            let start = Instant::now();
            for _ in 0..WRITES {
                // A plain read and write, as a CPU does with a word only it writes.
                let count = words[me].load(Ordering::Relaxed);
                words[me].store(black_box(count + 1), Ordering::Release);
            }
            let time = start.elapsed().as_nanos() as f64 / f64::from(WRITES);
            done[me].0[0].store(stretch, Ordering::Release);
            // No progress: it did not run. Much of it: this thread did not.
            let progress = done[1 - me].0[0].load(Ordering::Acquire) - other;
            if (1..=4).contains(&progress) && time < INTERRUPTED {
                times.push(time);
            }
        }
        times
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(|| write(1));
        let mut times = write(0);
        times.extend(second.join().expect("it does not panic"));
        times
    })
}

fn median(times: &mut [f64]) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

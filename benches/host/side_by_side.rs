//! Runs two ways of doing one thing in turns, and prints how they compare.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Prints a row for each comparison.
pub struct Table {
    rounds: usize,
    slice: Duration,
}

impl Table {
    /// A table that measures, or one that only checks that both sides agree.
    pub fn new(measure: bool) -> Self {
        let (rounds, slice) = if measure { (101, 1) } else { (1, 0) };
        Self {
            rounds,
            slice: Duration::from_millis(slice),
        }
    }

    /// Starts a group of rows.
    pub fn group(&mut self, name: &str) {
        println!(
            "\n{name:<48} {:>10} {:>10} {:>9}  (middle half)",
            "ours", "theirs", "ratio"
        );
    }

    /// Compares `ours` with `theirs`: both return a checksum of what they found, and it must be
    /// the same. Noise only ever adds time, so the ratio is that of the two least times; above 1,
    /// ours is faster. The middle half of the rounds' own ratios shows how far to trust it.
    pub fn row(
        &mut self,
        what: &str,
        mut ours: impl FnMut() -> u64,
        mut theirs: impl FnMut() -> u64,
    ) {
        assert_eq!(ours(), theirs(), "{what}: the two sides disagree");
        let calls = [
            calls_for(self.slice, &mut ours),
            calls_for(self.slice, &mut theirs),
        ];
        let rounds: Vec<[f64; 2]> = (0..self.rounds)
            .map(|_| {
                [
                    per_call(calls[0], &mut ours),
                    per_call(calls[1], &mut theirs),
                ]
            })
            .collect();
        let least = |side: usize| rounds.iter().map(|one| one[side]).fold(f64::MAX, f64::min);
        let mut ratios: Vec<f64> = rounds.iter().map(|one| one[1] / one[0]).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "  {what:<46} {:>10} {:>10} {:>9.2}  ({:.2}..{:.2})",
            shown(least(0)),
            shown(least(1)),
            least(1) / least(0),
            ratios[ratios.len() / 4],
            ratios[ratios.len() * 3 / 4],
        );
    }
}

/// How many calls fill a slice of time.
fn calls_for(slice: Duration, call: &mut impl FnMut() -> u64) -> u32 {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        if start.elapsed() >= slice || calls >= 1 << 24 {
            return calls;
        }
        calls *= 2;
    }
}

/// Nanoseconds per call.
fn per_call(calls: u32, call: &mut impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn shown(nanos: f64) -> String {
    match nanos {
        nanos if nanos < 1e3 => format!("{nanos:.1} ns"),
        nanos if nanos < 1e6 => format!("{:.2} us", nanos / 1e3),
        nanos => format!("{:.2} ms", nanos / 1e6),
    }
}

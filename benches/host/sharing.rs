//! Two threads that write to words of their own: in lines of 128 bytes each, as this crate's
//! per-CPU slots lie, against packed into one line.
//!
//! On a machine whose two processors are threads of one core, or with one processor, there is
//! nothing to see.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::side_by_side::Table;

const WRITES: u64 = 200_000;

#[repr(align(128))]
struct Apart(AtomicU64);

#[repr(align(128))]
struct Packed([AtomicU64; 2]);

pub fn rows(table: &mut Table) {
    let apart = [const { Apart(AtomicU64::new(0)) }; 2];
    let packed = Packed([const { AtomicU64::new(0) }; 2]);
    table.row(
        "2 threads, own words: 128 bytes apart, packed",
        || both([&apart[0].0, &apart[1].0]),
        || both([&packed.0[0], &packed.0[1]]),
    );
}

/// Two threads write to their words at the same time; the sum of what was written last.
fn both(words: [&AtomicU64; 2]) -> u64 {
    let ready = AtomicUsize::new(0);
    let write = |word: &AtomicU64| {
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < 2 {
            std::hint::spin_loop();
        }
        for _ in 0..WRITES {
            // A plain read and write, as a CPU does with a word only it writes.
            let last = word.load(Ordering::Relaxed);
            word.store(black_box(last.wrapping_add(1)), Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(words[1]));
        write(words[0]);
    });
    words.iter().map(|word| word.load(Ordering::Relaxed)).sum()
}

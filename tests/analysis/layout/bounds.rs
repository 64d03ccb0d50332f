//! The bound on stack, in whatever profile this is built with:
//! `cargo test --test analysis layout::bounds` at opt-level 2, `CARGO_PROFILE_TEST_OPT_LEVEL=0` before it for
//! a debug build, `--release` after it for a release one.

use std::hint::black_box;

use mtrr_pat::layout::{DefaultType, Region, Scratch, Solution, scratch_len};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;

use super::naive::{PAGE, Problem};
use super::stack::bytes_taken;

/// A map as deep as it gets: a page of another type at each end of every half.
fn deepest(width: u8) -> Problem {
    let end = 1u64 << width;
    let regions = (13..u32::from(width)).map(|order| {
        let start = end - (1 << order);
        Region::ram(start, start + PAGE, MemType::ALL[order as usize % 5])
    });
    Problem::new(width, regions.rev().collect())
}

#[test]
fn exact_questions_take_at_most_8_kib_of_stack() {
    let mut most = 0;
    for width in [32, 36, 39, 46, 48, 52] {
        for problem in [deepest(width), Problem::new(width, Vec::new())] {
            let wanted = problem.wanted(40);
            let given = wanted.default_type(DefaultType::Given(MemType::WriteBack));
            for question in [wanted, given] {
                let plan = bytes_taken(|| {
                    let _ = black_box(&question).plan();
                });
                let fewest = bytes_taken(|| {
                    let _ = black_box(&question).fewest();
                });
                most = most.max(plan).max(fewest);
            }
        }
    }
    for (_, problem) in super::maps::all() {
        let wanted = problem.wanted(40);
        most = most.max(bytes_taken(|| {
            let _ = black_box(&wanted).plan();
        }));
    }
    println!("exact questions: {most} bytes of stack");
    assert!(most > 2000, "{most}: nothing was measured");
    assert!(most <= 8192, "{most}");
}

/// With scratch from the caller the other question needs little more.
#[test]
fn least_damage_takes_at_most_16_kib_of_stack() {
    let mut scratch = vec![Scratch::EMPTY; scratch_len(40, PhysBits::MAX)];
    let mut most = 0;
    for width in [32, 39, 52] {
        let problem = deepest(width);
        for have in [0, 4, 10, 40] {
            let wanted = problem.wanted(have);
            let mut relaxed = false;
            most = most.max(bytes_taken(|| {
                let outcome = black_box(&wanted).plan_least_damage(&mut scratch);
                relaxed = matches!(outcome, Ok(Solution::Relaxed { .. }));
            }));
            assert!(relaxed || have == 40);
        }
    }
    println!("least damage: {most} bytes of stack");
    assert!(most <= 16384, "{most}");
}

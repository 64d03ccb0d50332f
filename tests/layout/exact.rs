//! The exact question against the textbook programme and the evaluator.

use mtrr_pat::layout::{DefaultType, Outcome, Unlisted};
use mtrr_pat::memtype::MemType;

use crate::check::{any_problem, any_type, check};
use crate::naive::{Naive, Problem};
use crate::oracle::Rng;

fn agrees(problem: &Problem, default: MemType) {
    let want = Naive::fewest(problem, default);
    let wanted = problem.wanted(40).default_type(DefaultType::Given(default));
    let count = wanted
        .fewest()
        .expect("the map is sound")
        .with_default(default);
    assert_eq!(count as u64, want, "default {default}: {problem:x?}");
    let outcome = wanted.plan().expect("the map is sound");
    match &outcome {
        Outcome::Exact(plan) => {
            assert_eq!(plan.registers().len() as u64, want);
            assert_eq!(plan.default_type(), default);
        }
        Outcome::Impossible { need, .. } => assert_eq!(*need as u64, want),
        Outcome::Relaxed { .. } => panic!("not asked for"),
    }
    check(problem, &outcome, 40);
}

/// The count and the effective map, on maps of all kinds and widths.
#[test]
fn random_maps_as_the_textbook_says() {
    let mut rng = Rng(1);
    for round in 0..20_000 {
        let problem = any_problem(&mut rng, if round % 50 == 0 { 12 } else { 5 });
        agrees(&problem, any_type(&mut rng));
    }
}

/// All five defaults come out of one pass, and the best one is found.
#[test]
fn every_default_at_once() {
    let mut rng = Rng(2);
    for _ in 0..300 {
        let problem = any_problem(&mut rng, 6);
        let wanted = problem.wanted(40);
        let fewest = wanted.fewest().expect("the map is sound");
        let all = MemType::ALL.map(|default| Naive::fewest(&problem, default));
        for (default, want) in MemType::ALL.into_iter().zip(all) {
            assert_eq!(fewest.with_default(default) as u64, want);
        }
        let least = all.into_iter().min().expect("there are five");
        match wanted.plan().expect("the map is sound") {
            Outcome::Exact(plan) => assert_eq!(plan.registers().len() as u64, least),
            Outcome::Impossible { need, .. } => assert_eq!(need as u64, least),
            Outcome::Relaxed { .. } => panic!("not asked for"),
        }
    }
}

/// More splits than are remembered: what was forgotten is worked out again.
#[test]
fn maps_past_the_remembered_choices() {
    let mut rng = Rng(3);
    for round in 0..40 {
        // Few registers, many splits: pages of WB that one UC block hides, in don't-care space.
        let mut problem = any_problem(&mut rng, 2);
        problem.unlisted = Unlisted::DontCare;
        let width = u64::from(problem.bits.get());
        let mut regions = Vec::new();
        let mut start = 0x1000_0000 + (rng.below(1 << 10) << 12);
        for place in 0..200 + rng.below(200) {
            let memtype = if place % 8 < 7 {
                MemType::WriteBack
            } else {
                MemType::Uncachable
            };
            let _ = memtype;
            let end = start + 0x1000;
            regions.push(mtrr_pat::layout::Region::ram(
                start,
                end,
                MemType::WriteBack,
            ));
            start = end + (1 + rng.below(1 << (width - 30).min(6))) * 0x3000;
        }
        problem.regions = regions;
        agrees(&problem, any_type(&mut rng));
        let _ = round;
    }
}

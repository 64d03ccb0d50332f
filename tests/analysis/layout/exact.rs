//! The exact question against the textbook programme and the evaluator.

use mtrr_pat::layout::{DefaultType, Region, Solution, Unlisted};
use mtrr_pat::memtype::MemType;

use super::check::{any_problem, any_type, check};
use super::naive::{Naive, PAGE, Problem};
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
        Solution::Exact(plan) => {
            assert_eq!(plan.registers().len() as u64, want);
            assert_eq!(plan.default_type(), default);
        }
        Solution::Impossible { need, .. } => assert_eq!(*need as u64, want),
        Solution::Relaxed { .. } => panic!("not asked for"),
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
            Solution::Exact(plan) => assert_eq!(plan.registers().len() as u64, least),
            Solution::Impossible { need, .. } => assert_eq!(need as u64, least),
            Solution::Relaxed { .. } => panic!("not asked for"),
        }
    }
}

/// How many nodes of the trie have one of these cuts strictly inside.
fn splits(cuts: &[u64], start: u64, order: u8) -> usize {
    let end = start + (1 << order);
    let next = cuts.partition_point(|cut| *cut <= start);
    if cuts.get(next).is_none_or(|cut| *cut >= end) {
        return 0;
    }
    let half = start + (1 << (order - 1));
    1 + splits(cuts, start, order - 1) + splits(cuts, half, order - 1)
}

/// More splits than are remembered: what was forgotten is worked out again.
#[test]
fn maps_past_the_remembered_choices() {
    let mut rng = Rng(3);
    for _ in 0..30 {
        let mut problem = any_problem(&mut rng, 0);
        problem.unlisted = Unlisted::DontCare;
        // Hundreds of pages of WB with gaps nobody cares about, a few others among them: few
        // registers, many splits.
        let mut start = 0x1000_0000 + (rng.below(1 << 10) << 12);
        for place in 0..600 {
            let other = place % 40 == 20;
            let memtype = if other {
                any_type(&mut rng)
            } else {
                MemType::WriteBack
            };
            problem
                .regions
                .push(Region::ram(start, start + PAGE, memtype));
            start += (2 + rng.below(60)) * PAGE;
        }
        // One cut per region: equal neighbours do not touch.
        assert!(splits(&problem.cuts(), 0, problem.bits.get()) > 2048);
        for default in [MemType::Uncachable, MemType::WriteBack] {
            agrees(&problem, default);
        }
    }
}

/// The maps of `tests/data/layout`, under every default type.
#[test]
fn realistic_maps() {
    let maps = super::maps::all();
    assert!(maps.len() >= 25);
    for (_, problem) in maps {
        for default in MemType::ALL {
            agrees(&problem, default);
        }
        let outcome = problem.wanted(10).plan().expect("the map is sound");
        check(&problem, &outcome, 10);
    }
}

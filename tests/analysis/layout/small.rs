//! Maps of a few pages against brute force.

use mtrr_pat::layout::{DefaultType, Lost, Scratch, Solution, Unlisted, scratch_len};
use mtrr_pat::memtype::MemType;

use super::brute;
use super::check::check;
use super::naive::{PAGE, Problem};
use crate::oracle::Rng;

/// All maps of eight pages with two types, and of those with all types and don't-cares every
/// 17th; `LAYOUT_ALL=1` takes every one.
#[test]
fn fewest_on_eight_pages() {
    let least = brute::smallest_sets(8);
    let all = MemType::ALL;
    let fewest = [0, 1, 2, 3, 4].map(|default| brute::fewest_of_all(&least, 8, default));
    let compare = |number: usize| {
        let problem = brute::problem(0x1234_0000, 8, number);
        let got = problem.wanted(40).fewest().expect("the map is sound");
        for (default, fewest) in all.into_iter().zip(&fewest) {
            let want = usize::from(fewest[number]);
            assert_eq!(got.with_default(default), want, "{default} {problem:x?}");
        }
    };
    for first in 0..5 {
        for second in first + 1..5 {
            for pages in 0..256usize {
                let digit = |page: u32| {
                    if pages >> page & 1 == 0 {
                        first
                    } else {
                        second
                    }
                };
                let number = (0..8).map(|page| digit(page) * 6usize.pow(page)).sum();
                compare(number);
                let problem = brute::problem(0x8000, 8, number);
                for default in [first, second, 0] {
                    let given = DefaultType::Given(all[default]);
                    let wanted = problem.wanted(8).default_type(given);
                    check(&problem, &wanted.plan().expect("the map is sound"), 8);
                }
            }
        }
    }
    let step = if std::env::var_os("LAYOUT_ALL").is_some() {
        1
    } else {
        17
    };
    (0..fewest[0].len()).step_by(step).for_each(compare);
}

fn lost(damage: brute::Damage) -> Lost {
    Lost {
        high: u64::from(damage.0) * PAGE,
        normal: u64::from(damage.1) * PAGE,
        low: u64::from(damage.2) * PAGE,
    }
}

/// With every number of registers: what is lost, and by how many registers.
fn damages_agree(problem: &Problem, least: &[u8], most: usize, scratch: &mut [Scratch]) {
    let ranks = [0usize, 1, 2, 3, 4];
    let brute = ranks.map(|rank| brute::least_damage(least, &problem.regions, rank, most));
    for have in 0..=most {
        let mut free = None;
        for rank in ranks {
            let given = DefaultType::Given(MemType::ALL[rank]);
            let wanted = problem.wanted(have).default_type(given);
            let outcome = wanted.plan_least_damage(scratch).expect("the map is sound");
            check(problem, &outcome, have);
            let want = brute[rank][have];
            free = match (free, want) {
                (Some(a), Some(b)) => Some(std::cmp::min::<brute::Damage>(a, b)),
                (a, b) => a.or(b),
            };
            match (&outcome, want) {
                (Solution::Exact(_), Some((0, 0, 0))) => {}
                (Solution::Relaxed { plan, lost: got }, Some(want)) => {
                    assert_eq!(*got, lost(want), "{have} {problem:x?}");
                    let used = plan.registers().len();
                    assert!(used == 0 || brute[rank][used - 1] != Some(want));
                }
                (Solution::Impossible { need, .. }, None) => {
                    let first = brute[rank].iter().position(Option::is_some);
                    assert!(first.is_none_or(|first| first == *need));
                }
                _ => panic!("{outcome:?}, by brute force {want:?}: {problem:x?}"),
            }
        }
        let outcome = problem.wanted(have).plan_least_damage(scratch);
        match outcome.expect("the map is sound") {
            Solution::Exact(_) => assert_eq!(free, Some((0, 0, 0))),
            Solution::Relaxed { lost: got, .. } => assert_eq!(Some(got), free.map(lost)),
            Solution::Impossible { .. } => panic!("default UC is always bearable"),
        }
    }
}

fn damage_on(pages: u32, maps: usize, most: usize, seed: u64) {
    let least = brute::smallest_sets(pages);
    let mut rng = Rng(seed);
    let mut scratch = Vec::new();
    for _ in 0..maps {
        let base = rng.below(1 << 10) * u64::from(pages) * PAGE;
        let regions = (0..u64::from(pages))
            .map(|page| brute::page_region(base + page * PAGE, rng.below(31)))
            .collect();
        let mut problem = Problem::new(32 + rng.below(21) as u8, regions);
        problem.unlisted = Unlisted::DontCare;
        scratch.resize(scratch_len(most, problem.bits), Scratch::EMPTY);
        damages_agree(&problem, &least, most, &mut scratch);
    }
}

#[test]
fn least_damage_on_four_pages() {
    damage_on(4, 3000, 4, 10);
}

#[test]
fn least_damage_on_eight_pages() {
    damage_on(8, 12, 5, 11);
}

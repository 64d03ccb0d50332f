//! Properties of the answers on random questions, solvable or not.

use mtrr_pat::layout::{
    DefaultType, Flaw, LayoutError, Lost, Region, RegionMap, Scratch, Solution, Wanted, scratch_len,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;

use super::check::{any_problem, any_region, any_type, check};
use super::naive::{Naive, PAGE, Problem};
use crate::oracle::Rng;

fn key(lost: &Lost) -> (u64, u64, u64) {
    (lost.high, lost.normal, lost.low)
}

/// More registers never lose more; with as many as are needed nothing is lost.
#[test]
fn damage_falls_with_the_number_of_registers() {
    let mut rng = Rng(30);
    let mut scratch = vec![Scratch::EMPTY; scratch_len(40, PhysBits::MAX)];
    let mut steps = 0;
    for _ in 0..150 {
        let problem = any_problem(&mut rng, 6);
        let default = DefaultType::Given(any_type(&mut rng));
        let default = if rng.one_in(2) {
            default
        } else {
            DefaultType::Free
        };
        let mut last = None;
        for have in 0..=12 {
            let wanted = problem.wanted(have).default_type(default);
            let outcome = wanted.plan_least_damage(&mut scratch).expect("sound");
            check(&problem, &outcome, have);
            let now = match outcome {
                Solution::Exact(_) => Some((0, 0, 0)),
                Solution::Relaxed { plan, lost } => {
                    assert_eq!(wanted.lost(&plan), lost);
                    Some(key(&lost))
                }
                Solution::Impossible { .. } => None,
            };
            match (last, now) {
                (Some(last), Some(now)) => assert!(now <= last, "{problem:x?}"),
                (Some(_), None) => panic!("worse with {have}: {problem:x?}"),
                (None, _) => {}
            }
            steps += u32::from(last.is_some() && last != now);
            last = now;
            if now == Some((0, 0, 0)) {
                break;
            }
        }
    }
    assert!(steps > 200, "{steps}");
}

/// Scratch beyond the least and other contents change nothing but the time.
#[test]
fn scratch_does_not_matter() {
    let mut rng = Rng(31);
    for _ in 0..100 {
        let problem = any_problem(&mut rng, 8);
        let have = rng.below(8) as usize;
        let wanted = problem.wanted(have);
        let least = scratch_len(have, problem.bits);
        let mut small = vec![Scratch::EMPTY; least];
        let mut large = vec![Scratch::EMPTY; 3 * least];
        let first = wanted.plan_least_damage(&mut small);
        assert_eq!(first, wanted.plan_least_damage(&mut large));
        assert_eq!(first, wanted.plan_least_damage(&mut small));
        let (need, have) = (least, least - 1);
        let short = wanted.plan_least_damage(&mut small[1..]);
        assert_eq!(short, Err(LayoutError::ShortScratch { need, have }));
    }
}

/// `LAYOUT_RANDOM` random problems, 20,000 unless said otherwise, many of them unsolvable or
/// flawed: a right plan, an honest "no" or a typed error, never a panic.
#[test]
fn random_problems_never_have_a_wrong_answer() {
    let count = std::env::var("LAYOUT_RANDOM").map_or(20_000, |count| {
        count.parse::<u64>().expect("LAYOUT_RANDOM is a number")
    });
    let mut rng = Rng(32);
    let mut scratch = vec![Scratch::EMPTY; scratch_len(16, PhysBits::MAX)];
    let mut outcomes = [0u64; 4];
    for _ in 0..count {
        let mut problem = any_problem(&mut rng, 8);
        problem.has_wc = !rng.one_in(8);
        if rng.one_in(10) {
            outcomes[3] += u64::from(flawed(&mut rng, &mut problem));
            continue;
        }
        let registers = rng.below(17) as usize;
        let keep_free = rng.below(3) as usize;
        let available = registers.saturating_sub(keep_free);
        let mut wanted = problem.wanted(registers).keep_free(keep_free);
        if rng.one_in(3) {
            wanted = wanted.default_type(DefaultType::Given(any_type(&mut rng)));
        }
        let outcome = if rng.one_in(4) {
            wanted.plan_least_damage(&mut scratch)
        } else {
            wanted.plan()
        };
        match outcome {
            Ok(outcome) => {
                check(&problem, &outcome, available);
                outcomes[match outcome {
                    Solution::Exact(_) => 0,
                    Solution::Relaxed { .. } => 1,
                    Solution::Impossible { .. } => 2,
                }] += 1;
            }
            Err(error) => {
                assert_eq!(error, LayoutError::NoWriteCombining);
                assert!(!problem.has_wc);
                outcomes[3] += 1;
            }
        }
    }
    println!("exact, relaxed, impossible, refused: {outcomes:?}");
    assert!(
        outcomes.into_iter().all(|times| times > count / 100),
        "{outcomes:?}"
    );
}

/// Spoils a map and checks that the first flaw is named; says whether there was one.
fn flawed(rng: &mut Rng, problem: &mut Problem) -> bool {
    let width = problem.bits.get();
    for _ in 0..1 + rng.below(2) {
        let place = rng.below(problem.regions.len() as u64 + 1) as usize;
        let mut region = any_region(rng, width);
        match rng.below(4) {
            0 => region.end = region.start - rng.below(2) * region.start,
            1 => region.start += rng.below(PAGE),
            2 => region.end = rng.next(),
            _ => {}
        }
        problem.regions.insert(place, region);
    }
    let first = first_flaw(problem);
    let got = problem.wanted(8).plan();
    match first {
        Some((index, flaw)) => assert_eq!(got, Err(LayoutError::Region { index, flaw })),
        None => assert!(!matches!(got, Err(LayoutError::Region { .. }))),
    }
    first.is_some()
}

fn first_flaw(problem: &Problem) -> Option<(usize, Flaw)> {
    let regions = problem.regions.iter().enumerate();
    regions.clone().find_map(|(index, region)| {
        let before = index.checked_sub(1).map(|before| problem.regions[before]);
        let flaws = [
            (region.end <= region.start, Flaw::Empty),
            ((region.start | region.end) % PAGE != 0, Flaw::Unaligned),
            (region.end > problem.bits.end(), Flaw::OutOfSpace),
            (
                before.is_some_and(|before| region.start < before.start),
                Flaw::Unsorted,
            ),
            (
                before.is_some_and(|before| region.start < before.end),
                Flaw::Overlap,
            ),
        ];
        let found = flaws.into_iter().find(|(is, _)| *is)?;
        Some((index, found.1))
    })
}

#[test]
fn refused_questions() {
    let bits = PhysBits::new(40).expect("a width");
    let wc = [Region::mmio(0, PAGE, MemType::WriteCombining)];
    let mut scratch = [Scratch::EMPTY; scratch_len(40, PhysBits::MAX)];
    let many = Err(LayoutError::TooManyRegisters { registers: 41 });
    assert_eq!(Wanted::new(&wc, bits, 41).plan(), many);
    assert_eq!(
        Wanted::new(&wc, bits, 41).plan_least_damage(&mut scratch),
        many
    );
    let without = Wanted::new(&wc, bits, 40).without_write_combining();
    assert_eq!(without.plan(), Err(LayoutError::NoWriteCombining));
    assert_eq!(without.fewest(), Err(LayoutError::NoWriteCombining));
    // The other question may give it up.
    let relaxed = without.plan_least_damage(&mut scratch);
    assert!(matches!(relaxed, Ok(Solution::Relaxed { lost, .. }) if lost.total() == PAGE));
    let default = without.default_type(DefaultType::Given(MemType::WriteCombining));
    let refused = default.plan_least_damage(&mut scratch);
    assert_eq!(refused, Err(LayoutError::NoWriteCombining));
    // More kept free than there are: nothing is available.
    let none = Wanted::new(&wc, bits, 2).keep_free(5).plan();
    assert_eq!(none, Ok(Solution::Impossible { need: 1, have: 0 }));
    // Nothing wanted at all, and nothing but one region over everything.
    let empty = Wanted::new(&[], bits, 0).plan();
    assert!(matches!(empty, Ok(Solution::Exact(plan)) if plan.registers().is_empty()));
    let all = [Region::ram(0, bits.end(), MemType::WriteThrough)];
    assert!(matches!(
        Wanted::new(&all, bits, 0).plan(),
        Ok(Solution::Exact(_))
    ));
    let given = Wanted::new(&all, bits, 1).default_type(DefaultType::Given(MemType::WriteBack));
    assert!(matches!(given.plan(), Ok(Solution::Exact(plan)) if plan.registers().len() == 1));
}

/// Painting in any order, against a list searched from the end.
#[test]
fn painted_maps() {
    let mut rng = Rng(33);
    for _ in 0..2000 {
        let bits = PhysBits::new(33).expect("a width");
        let mut map = RegionMap::<8>::new(bits);
        let mut painted: Vec<Region> = Vec::new();
        for _ in 0..12 {
            let region = any_region(&mut rng, 33);
            let before = map.regions().to_vec();
            match map.paint(region) {
                Ok(()) => painted.push(region),
                Err(error) => {
                    assert_eq!(error, LayoutError::MapFull { capacity: 8 });
                    assert_eq!(map.regions(), before);
                }
            }
        }
        let last = |addr: u64| {
            let mut from_end = painted.iter().rev();
            let found = from_end.find(|region| (region.start..region.end).contains(&addr))?;
            Some((found.want, found.kind, found.priority))
        };
        for addr in painted
            .iter()
            .flat_map(|r| [r.start, r.end, r.start.max(PAGE) - PAGE])
        {
            let mut regions = map.regions().iter();
            let got = regions.find(|region| (region.start..region.end).contains(&addr));
            assert_eq!(got.map(|r| (r.want, r.kind, r.priority)), last(addr));
        }
        assert!(
            map.regions()
                .windows(2)
                .all(|pair| pair[0].end <= pair[1].start)
        );
        assert!(Wanted::new(map.regions(), bits, 40).fewest().is_ok());
    }
}

/// A slice of thousands of regions is answered like any other.
#[test]
fn large_maps() {
    let regions: Vec<Region> = (0..2000)
        .map(|place| {
            let start = 0x10_0000 + place * 2 * PAGE;
            let memtype = MemType::ALL[(place % 5) as usize];
            Region::ram(start, start + PAGE, memtype)
        })
        .collect();
    let problem = Problem::new(46, regions);
    let fewest = problem.wanted(40).fewest().expect("sound");
    for default in [MemType::Uncachable, MemType::WriteBack] {
        let want = Naive::fewest(&problem, default) as usize;
        assert_eq!(fewest.with_default(default), want);
        assert!(want > 1000);
    }
}

//! Random questions, and the check of answers by the evaluator of the lookup tests.

use mtrr_pat::layout::{
    FixedRanges, Kind, Lost, Plan, Priority, Region, RegionMap, Solution, Unlisted, Want,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg};
use mtrr_pat::snapshot::Snapshot;

use super::naive::{PAGE, Problem};
use crate::oracle::{Rng, page_type};

/// The machine of a question, nothing programmed, with as many variable ranges as can be.
pub fn machine(problem: &Problem) -> Snapshot {
    let mut base = Snapshot::empty(problem.bits);
    base.cap = Some(MtrrCap::from_raw(40 | 1 << 8 | 1 << 10));
    base.def_type = MtrrDefType::from_raw(match problem.fixed {
        FixedRanges::On => MtrrDefType::E | MtrrDefType::FE,
        FixedRanges::Off => MtrrDefType::E,
    });
    base.syscfg = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
    base.top_mem2 = problem.top_mem2;
    base
}

/// Whether a type may stand in for the one wanted, written down pair by pair.
pub fn may_become(kind: Kind, want: MemType, got: MemType) -> bool {
    use MemType::{
        Uncachable as UC, WriteBack as WB, WriteCombining as WC, WriteProtected as WP,
        WriteThrough as WT,
    };
    let swaps = [
        (WB, WT),
        (WB, WP),
        (WT, WB),
        (WT, WP),
        (WP, WB),
        (WP, WT),
        (WC, WB),
    ];
    want == got || got == UC || (kind == Kind::Ram && swaps.contains(&(want, got)))
}

/// Checks a plan page by page where anything may change; returns what it loses.
pub fn losses_by_page(problem: &Problem, plan: &Plan) -> Lost {
    let target = plan.target(&machine(problem)).unwrap();
    let mut points = problem.cuts();
    for range in plan.registers() {
        let (start, size) = range.block(problem.bits).expect("masks are contiguous");
        points.extend([start, start + size]);
    }
    points.sort_unstable();
    points.dedup();
    let mut lost = Lost::default();
    for pair in points.windows(2) {
        let got = page_type(&target, pair[0]);
        assert_eq!(got, page_type(&target, pair[1] - PAGE));
        let fixed = problem.fixed == FixedRanges::On && pair[0] < 0x10_0000;
        let got = got.defined().expect("no undefined overlap");
        let Some((want, kind, priority)) = problem.at(pair[0]) else {
            continue;
        };
        assert!(
            !fixed && may_become(kind, want, got),
            "{want} {got}\n{plan}"
        );
        if want != got {
            *match priority {
                Priority::Low => &mut lost.low,
                Priority::Normal => &mut lost.normal,
                Priority::High => &mut lost.high,
            } += pair[1] - pair[0];
        }
    }
    lost
}

/// Checks whatever came out.
pub fn check(problem: &Problem, outcome: &Solution, available: usize) {
    match outcome {
        Solution::Exact(plan) => {
            assert!(plan.registers().len() <= available);
            assert_eq!(
                losses_by_page(problem, plan),
                Lost::default(),
                "{problem:?}"
            );
        }
        Solution::Relaxed { plan, lost } => {
            assert!(plan.registers().len() <= available);
            assert_eq!(losses_by_page(problem, plan), *lost, "{problem:?}");
            assert!(lost.total() > 0);
        }
        Solution::Impossible { need, have } => {
            assert_eq!(*have, available);
            assert!(need > have, "{problem:?}");
        }
    }
}

pub fn any_type(rng: &mut Rng) -> MemType {
    MemType::ALL[rng.below(5) as usize]
}

/// A region's want: mostly what real maps have.
fn any_want(rng: &mut Rng) -> (Want, Kind) {
    match rng.below(10) {
        0..=2 => (Want::Type(MemType::WriteBack), Kind::Ram),
        3..=4 => (Want::Type(MemType::Uncachable), Kind::Mmio),
        5 => (Want::DontCare, Kind::Mmio),
        6..=7 => (Want::Type(any_type(rng)), Kind::Mmio),
        _ => (Want::Type(any_type(rng)), Kind::Ram),
    }
}

pub fn any_region(rng: &mut Rng, width: u8) -> Region {
    let end = 1u64 << width;
    // Where: the whole space, below 16 GiB, around 4 GiB, below 2 MiB.
    let place = match rng.below(4) {
        0 => rng.below(end),
        1 => rng.below(end.min(1 << 34)),
        2 => {
            (1u64 << 32)
                .wrapping_sub(1 << 28)
                .wrapping_add(rng.below(1 << 29))
                % end
        }
        _ => rng.below(0x20_0000),
    };
    let step = 1u64 << [12, 12, 16, 20, 24, 28, 30][rng.below(7) as usize];
    let start = (place / step * step).min(end - PAGE);
    let size = (1 + rng.below(20)) * step;
    let (want, kind) = any_want(rng);
    let priority = [Priority::Low, Priority::Normal, Priority::High][rng.below(3) as usize];
    Region {
        start,
        end: (start + size).min(end),
        want,
        kind,
        priority,
    }
}

/// A random question of any width with up to `most` regions painted over each other.
pub fn any_problem(rng: &mut Rng, most: u64) -> Problem {
    let width = 32 + rng.below(21) as u8;
    let mut problem = Problem::new(width, Vec::new());
    let mut map = RegionMap::<64>::new(problem.bits);
    for _ in 0..rng.below(most + 1) {
        map.paint(any_region(rng, width)).expect("64 are enough");
    }
    problem.regions = map.regions().to_vec();
    if rng.one_in(2) {
        problem.fixed = FixedRanges::On;
    }
    if rng.one_in(2) {
        problem.unlisted = Unlisted::DontCare;
    }
    if rng.one_in(3) {
        problem.top_mem2 = (rng.below(1 << 13) << 23).min(problem.bits.end());
    }
    problem
}

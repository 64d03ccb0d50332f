//! The planner against the textbook dynamic programme with a hash table, on the maps of
//! `tests/data/layout` and on maps that grow.
//!
//! Ours makes the registers and has them checked by `lookup`; theirs only counts.

use std::hint::black_box;

use mtrr_pat::layout::{DefaultType, Region, Scratch, Solution, Unlisted, Wanted, scratch_len};
use mtrr_pat::memtype::MemType;

use crate::side_by_side::Table;

#[path = "../../tests/analysis/layout/maps.rs"]
mod maps;
#[path = "../../tests/analysis/layout/naive.rs"]
mod naive;
#[cfg(target_arch = "x86_64")]
#[path = "../../tests/analysis/layout/stack.rs"]
mod stack;

use naive::{Naive, PAGE, Problem};

pub fn rows(table: &mut Table) {
    for (name, problem) in maps::all() {
        for default in [MemType::Uncachable, MemType::WriteBack] {
            row(table, &name, &problem, default);
        }
    }
    for (name, problem) in maps::all().iter().step_by(6) {
        best_default(table, name, problem);
    }
    table.group("layout, growth: regions of RAM, 46 bits");
    for regions in [1, 4, 16, 64, 256] {
        let problem = scattered(46, regions);
        row(
            table,
            &format!("{regions} regions"),
            &problem,
            MemType::Uncachable,
        );
    }
    table.group("layout, growth: address bits, 16 regions");
    for width in [32, 36, 40, 44, 48, 52] {
        let problem = scattered(width, 16);
        row(
            table,
            &format!("{width} bits"),
            &problem,
            MemType::Uncachable,
        );
    }
    table.group("layout, past the remembered choices");
    for regions in [200, 800] {
        let problem = mostly_wb(regions);
        row(
            table,
            &format!("{regions} pages"),
            &problem,
            MemType::Uncachable,
        );
    }
    table.group("layout, least damage / the exact question");
    for registers in [2, 4, 8] {
        least_damage(table, registers);
    }
    #[cfg(target_arch = "x86_64")]
    println!(
        "\n  stack of the exact questions: at most {} bytes",
        stack()
    );
}

/// What is compared: the registers used, or needed.
fn count(wanted: &Wanted<'_>) -> u64 {
    match black_box(wanted).plan().expect("the map is sound") {
        Solution::Exact(plan) => plan.registers().len() as u64,
        Solution::Impossible { need, .. } => need as u64,
        Solution::Relaxed { .. } => unreachable!("not asked for"),
    }
}

fn row(table: &mut Table, name: &str, problem: &Problem, default: MemType) {
    let wanted = problem.wanted(40).default_type(DefaultType::Given(default));
    let what = format!("{name}, default {}", default.short());
    table.row(
        &what,
        || count(&wanted),
        || Naive::fewest(black_box(problem), default),
    );
}

fn best_default(table: &mut Table, name: &str, problem: &Problem) {
    let wanted = problem.wanted(40);
    let theirs = || {
        let all = MemType::ALL.map(|default| Naive::fewest(black_box(problem), default));
        all.into_iter().min().expect("there are five")
    };
    table.row(&format!("{name}, best default"), || count(&wanted), theirs);
}

/// So many equal pieces of WB, spread over the first half of the space.
fn scattered(width: u8, regions: u64) -> Problem {
    let step = (1u64 << (width - 1)) / regions;
    let regions = (0..regions).map(|place| {
        let start = place * step + (place * 37 % 64) * PAGE;
        Region::ram(start, start + step / 2, MemType::WriteBack)
    });
    let regions = regions.map(|region| Region {
        end: region.end / PAGE * PAGE,
        start: region.start / PAGE * PAGE,
        ..region
    });
    Problem::new(width, regions.collect())
}

/// Pages of WB with gaps that do not matter and a page of UC in a hundred: few registers, many
/// nodes.
fn mostly_wb(pages: u64) -> Problem {
    let region = |place: u64| {
        let start = 0x1000_0000 + (place * 29 + place % 7) * PAGE;
        let memtype = if place % 100 == 50 {
            MemType::Uncachable
        } else {
            MemType::WriteBack
        };
        Region::ram(start, start + PAGE, memtype)
    };
    let mut problem = Problem::new(46, (0..pages).map(region).collect());
    problem.unlisted = Unlisted::DontCare;
    problem
}

/// How much more the least-damage question costs than the exact one: the ratio is below 1.
fn least_damage(table: &mut Table, registers: usize) {
    let (name, problem) = maps::all().pop().expect("there are maps");
    let mut scratch = vec![Scratch::EMPTY; scratch_len(registers, problem.bits)];
    let wanted = problem.wanted(registers);
    let lost = |outcome| match outcome {
        Ok(Solution::Relaxed { lost, .. }) => u64::from(lost.total() > 0),
        Ok(Solution::Impossible { .. }) => 1,
        _ => 0,
    };
    table.row(
        &format!("{name}, {registers} registers"),
        || lost(black_box(&wanted).plan_least_damage(&mut scratch)),
        || lost(black_box(&wanted).plan()),
    );
}

#[cfg(target_arch = "x86_64")]
fn stack() -> usize {
    let taken = maps::all().into_iter().map(|(_, problem)| {
        let wanted = problem.wanted(40);
        stack::bytes_taken(|| {
            let _ = black_box(black_box(&wanted).plan());
        })
    });
    taken.max().expect("there are maps")
}

//! Every set of aligned blocks over a few pages, no structure assumed.
//!
//! Blocks act on pages independently of their order, so sets are tried by adding one block after
//! the other and keeping, for each combination of page types, the smallest set that gives it.

use mtrr_pat::layout::{Kind, Priority, Region, Unlisted, Want};
use mtrr_pat::memtype::MemType;

use super::naive::{PAGE, Problem};

/// A page no block covers, or with an undefined overlap; in between the rank of a type, plus one.
pub const NONE: usize = 0;
pub const UNDEFINED: usize = 6;

/// What a page becomes when a block is added.
fn added(page: usize, block: usize) -> usize {
    let (uc, wt, wb) = (1, 3, 5);
    match (page, block) {
        (NONE, _) => block,
        _ if page == block => page,
        _ if page == uc || block == uc => uc,
        (UNDEFINED, _) => UNDEFINED,
        _ if [(wt, wb), (wb, wt)].contains(&(page, block)) => wt,
        _ => UNDEFINED,
    }
}

/// For each combination of page types, three bits a page, the size of the smallest set of blocks
/// that gives it; `u8::MAX` where none does.
pub fn smallest_sets(pages: u32) -> Vec<u8> {
    let mut least = vec![u8::MAX; 1 << (3 * pages)];
    least[0] = 0;
    for order in 0..=pages.ilog2() {
        let size = 1 << order;
        for first in (0..pages).step_by(size) {
            for block in 1..=5 {
                add_block(&mut least, first, size as u32, block);
            }
        }
    }
    least
}

fn add_block(least: &mut [u8], first: u32, size: u32, block: usize) {
    for pages in 0..least.len() {
        let Some(count) = least[pages].checked_add(1) else {
            continue;
        };
        let mut with = pages;
        for page in first..first + size {
            let field = with >> (3 * page) & 7;
            with ^= (field ^ added(field, block)) << (3 * page);
        }
        least[with] = least[with].min(count);
    }
}

/// The rank of a page's type under a default type; `None` for an undefined overlap.
pub fn rank_of(pages: usize, page: u32, default: usize) -> Option<usize> {
    match pages >> (3 * page) & 7 {
        NONE => Some(default),
        UNDEFINED => None,
        field => Some(field - 1),
    }
}

/// The fewest blocks for every map of `pages` pages, as digits to base 6 (a rank, or 5 for "don't
/// care"), with one default type.
pub fn fewest_of_all(least: &[u8], pages: u32, default: usize) -> Vec<u8> {
    let mut fewest = vec![u8::MAX; 6usize.pow(pages)];
    let reached = least.iter().enumerate();
    for (state, count) in reached.filter(|(_, count)| **count < u8::MAX) {
        let number = (0..pages).try_fold(0, |number, page| {
            Some(number + rank_of(state, page, default)? * 6usize.pow(page))
        });
        if let Some(number) = number {
            fewest[number] = fewest[number].min(*count);
        }
    }
    for page in 0..pages {
        let step = 6usize.pow(page);
        for number in 0..fewest.len() {
            if number / step % 6 == 5 {
                let best = (1..=5).map(|down| fewest[number - down * step]).min();
                fewest[number] = best.expect("five types");
            }
        }
    }
    fewest
}

/// The question whose map has these digits, from `base` on, nothing wanted elsewhere.
pub fn problem(base: u64, pages: u32, number: usize) -> Problem {
    let regions = (0..pages).map(|page| {
        let start = base + u64::from(page) * PAGE;
        match number / 6usize.pow(page) % 6 {
            5 => Region::dont_care(start, start + PAGE),
            rank => Region::ram(start, start + PAGE, MemType::ALL[rank]),
        }
    });
    let mut problem = Problem::new(36, regions.collect());
    problem.unlisted = Unlisted::DontCare;
    problem
}

/// What is lost on each page, of a set of pages and of priorities: (high, normal, low).
pub type Damage = (u32, u32, u32);

/// The least that is lost with each number of blocks from 0 to `most`; `None` where even the
/// bearable cannot be had.
pub fn least_damage(
    least: &[u8],
    regions: &[Region],
    default: usize,
    most: usize,
) -> Vec<Option<Damage>> {
    let mut best = vec![None; most + 1];
    for (state, count) in least.iter().enumerate() {
        let Some(place) = best.get_mut(usize::from(*count)) else {
            continue;
        };
        if let Some(damage) = damage(state, regions, default)
            && place.is_none_or(|best| damage < best)
        {
            *place = Some(damage);
        }
    }
    for more in 1..best.len() {
        let fewer = best[more - 1];
        best[more] = match (best[more], fewer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    best
}

fn damage(state: usize, regions: &[Region], default: usize) -> Option<Damage> {
    let mut damage = (0, 0, 0);
    for (page, region) in (0..).zip(regions) {
        let got = MemType::ALL[rank_of(state, page, default)?];
        let Want::Type(want) = region.want else {
            continue;
        };
        if !super::check::may_become(region.kind, want, got) {
            return None;
        }
        if want != got {
            *match region.priority {
                Priority::High => &mut damage.0,
                Priority::Normal => &mut damage.1,
                Priority::Low => &mut damage.2,
            } += 1;
        }
    }
    Some(damage)
}

/// One of the wants a page can have: five types, two kinds, three priorities, and none.
pub fn page_region(start: u64, which: u64) -> Region {
    let end = start + PAGE;
    let Some(which) = which.checked_sub(1) else {
        return Region::dont_care(start, end);
    };
    Region {
        start,
        end,
        want: Want::Type(MemType::ALL[(which % 5) as usize]),
        kind: [Kind::Ram, Kind::Mmio][(which / 5 % 2) as usize],
        priority: [Priority::Normal, Priority::Low, Priority::High][(which / 10 % 3) as usize],
    }
}

//! The textbook dynamic programme, with a heap and a hash table: what the planner is measured
//! against. Shares nothing with it but the types of question and answer.

use std::collections::HashMap;

use mtrr_pat::layout::{FixedRanges, Kind, Priority, Region, Unlisted, Want, Wanted};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;

pub const PAGE: u64 = 0x1000;
/// More than any count.
pub const NEVER: u64 = 1 << 40;

/// A question, owning its map.
#[derive(Clone, Debug)]
pub struct Problem {
    pub regions: Vec<Region>,
    pub bits: PhysBits,
    pub fixed: FixedRanges,
    pub unlisted: Unlisted,
    pub top_mem2: u64,
    pub has_wc: bool,
}

impl Problem {
    pub fn new(width: u8, regions: Vec<Region>) -> Self {
        Self {
            regions,
            bits: PhysBits::new(width).expect("a width of 32 to 52"),
            fixed: FixedRanges::Off,
            unlisted: Unlisted::Uncachable,
            top_mem2: 0,
            has_wc: true,
        }
    }

    pub fn wanted(&self, registers: usize) -> Wanted<'_> {
        let wanted = Wanted::new(&self.regions, self.bits, registers)
            .fixed_ranges(self.fixed)
            .unlisted(self.unlisted)
            .forced_wb_below(self.top_mem2);
        if self.has_wc {
            wanted
        } else {
            wanted.without_write_combining()
        }
    }

    /// What is wanted at an address.
    pub fn at(&self, addr: u64) -> Option<(MemType, Kind, Priority)> {
        if self.fixed == FixedRanges::On && addr < 0x10_0000 {
            return None;
        }
        let first = self.regions.partition_point(|r| r.end <= addr);
        match self.regions.get(first).filter(|r| r.start <= addr) {
            None if self.unlisted == Unlisted::DontCare => None,
            None => Some((MemType::Uncachable, Kind::Mmio, Priority::Normal)),
            Some(region) => match region.want {
                Want::DontCare => None,
                Want::Type(memtype) => Some((memtype, region.kind, region.priority)),
            },
        }
    }

    /// The type an address has where no variable range matches.
    pub fn bare(&self, addr: u64, default: MemType) -> MemType {
        if addr >= 1 << 32 && addr < self.top_mem2 {
            MemType::WriteBack
        } else {
            default
        }
    }

    /// Every address at which anything may change, sorted.
    pub fn cuts(&self) -> Vec<u64> {
        let mut cuts = vec![0, 0x10_0000, 1 << 32, self.top_mem2, self.bits.end()];
        for region in &self.regions {
            cuts.extend([region.start, region.end]);
        }
        cuts.retain(|cut| *cut <= self.bits.end());
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
}

/// The type of overlapping blocks; `None` where the manuals leave it undefined.
pub fn overlap(a: MemType, b: MemType) -> Option<MemType> {
    use MemType::{Uncachable, WriteBack, WriteThrough};
    match (a, b) {
        _ if a == b => Some(a),
        (Uncachable, _) | (_, Uncachable) => Some(Uncachable),
        (WriteBack, WriteThrough) | (WriteThrough, WriteBack) => Some(WriteThrough),
        _ => None,
    }
}

pub struct Naive<'a> {
    problem: &'a Problem,
    cuts: Vec<u64>,
    default: MemType,
    known: HashMap<(u64, u8, Option<MemType>), u64>,
}

impl<'a> Naive<'a> {
    /// The fewest registers with a default type.
    pub fn fewest(problem: &'a Problem, default: MemType) -> u64 {
        let mut naive = Self {
            problem,
            cuts: problem.cuts(),
            default,
            known: HashMap::new(),
        };
        naive.cost(0, problem.bits.get(), None)
    }

    fn cost(&mut self, start: u64, order: u8, around: Option<MemType>) -> u64 {
        if let Some(cost) = self.known.get(&(start, order, around)) {
            return *cost;
        }
        let mut best = self.inside(start, order, around);
        for block in MemType::ALL {
            if block == MemType::WriteCombining && !self.problem.has_wc {
                continue;
            }
            let Some(all) = around.map_or(Some(block), |around| overlap(around, block)) else {
                continue;
            };
            if around != Some(all) {
                best = best.min(1 + self.inside(start, order, Some(all)));
            }
        }
        self.known.insert((start, order, around), best);
        best
    }

    fn inside(&mut self, start: u64, order: u8, around: Option<MemType>) -> u64 {
        let end = start + (1 << order);
        let next = self.cuts.partition_point(|cut| *cut <= start);
        if self.cuts.get(next).is_none_or(|cut| *cut >= end) {
            let bare = self.problem.bare(start, self.default);
            let got = around.unwrap_or(bare);
            let fine = self.problem.at(start).is_none_or(|(want, ..)| want == got);
            return if fine { 0 } else { NEVER };
        }
        let half = 1 << (order - 1);
        let low = self.cost(start, order - 1, around);
        let high = self.cost(start + half, order - 1, around);
        NEVER.min(low + high)
    }
}

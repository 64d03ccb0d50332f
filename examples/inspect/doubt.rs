//! Where a map is certain, and where something that the dump lacks could change it.

use mtrr_pat::lookup::Run;
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::regs::MtrrDefType;
use mtrr_pat::snapshot::Snapshot;

use super::gaps::{self, Gaps};
use super::machine::FOUR_GIB;
use super::map::Map;
use super::regs::Regs;

/// Addresses whose type is not certain: sorted, disjoint, half-open.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    ranges: Vec<(u64, u64)>,
}

/// A part of a map that is certain throughout, or nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Addresses, and the type that the registers in the dump give.
    pub run: Run,
    /// Whether that is certain.
    pub certain: bool,
}

impl Doubt {
    /// What `gaps` leave uncertain of the map of `boot`, which was filled from `regs`.
    pub fn of(boot: &Snapshot, regs: &Regs, gaps: &Gaps) -> Self {
        let mut ranges = Vec::new();
        let end = boot.phys_bits.end();
        if boot.cap.is_none() || regs.enabled == Some(false) {
            return Self::default();
        }
        let floor = if boot.fixed_in_force() || regs.fixed_enabled != Some(false) {
            FIXED_END
        } else {
            0
        };
        ranges.extend(gaps::unknown_fixed(regs));
        if gaps.none_shown && regs.enabled.is_none() {
            return Self {
                ranges: vec![(0, end)],
            };
        }
        if gaps.variable() {
            let mut last = floor;
            for run in certainly_uncachable(boot).filter(|run| run.end > floor) {
                ranges.push((last, run.start.max(floor)));
                last = run.end;
            }
            ranges.push((last, end));
        } else if gaps.top_mem2 {
            ranges.push((FOUR_GIB, end));
        }
        ranges.retain(|(start, end)| start < end);
        ranges.sort_unstable();
        Self {
            ranges: super::fill::merged(ranges),
        }
    }

    /// What the kernel's own map leaves `open`, and the fixed ranges that `regs` lacks.
    pub fn of_list(open: Vec<(u64, u64)>, regs: &Regs) -> Self {
        let low = gaps::unknown_fixed(regs);
        let floor = if low.is_empty() && !regs.fixed_known() {
            0
        } else {
            FIXED_END
        };
        let high = open.into_iter().map(|(start, end)| (start.max(floor), end));
        let mut ranges: Vec<(u64, u64)> = low.into_iter().chain(high).collect();
        ranges.retain(|(start, end)| start < end);
        Self {
            ranges: super::fill::merged(ranges),
        }
    }

    /// Whether anything in `start..end` is in doubt.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.1 <= start);
        self.ranges.get(after).is_some_and(|range| range.0 < end)
    }

    /// The runs of `map`, cut where doubt begins and ends.
    pub fn pieces(&self, map: &Map) -> Vec<Piece> {
        let mut out = Vec::with_capacity(map.runs.len());
        for run in &map.runs {
            let mut at = run.start;
            let after = self.ranges.partition_point(|range| range.1 <= at);
            for (start, end) in self.ranges.iter().skip(after) {
                if *start >= run.end {
                    break;
                }
                push(&mut out, run, at, *start, true);
                push(&mut out, run, (*start).max(at), (*end).min(run.end), false);
                at = (*end).min(run.end);
            }
            push(&mut out, run, at, run.end, true);
        }
        out
    }
}

fn push(out: &mut Vec<Piece>, of: &Run, start: u64, end: u64, certain: bool) {
    if start < end {
        let mut run = *of;
        (run.start, run.end) = (start, end);
        out.push(Piece { run, certain });
    }
}

/// Runs that a range in the dump makes uncachable: nothing that is added changes them.
fn certainly_uncachable(boot: &Snapshot) -> impl Iterator<Item = Run> {
    let mut ranges_only = *boot;
    let default = u64::from(MemType::WriteBack.raw());
    ranges_only.def_type = MtrrDefType::from_raw(MtrrDefType::E | default);
    ranges_only.syscfg = None;
    let runs = Map::new(&ranges_only).runs;
    runs.into_iter()
        .filter(|run| run.memtype == MemType::Uncachable.into())
}

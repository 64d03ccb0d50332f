//! How few variable ranges would do: minima and the layouts behind them.

use mtrr_pat::layout::{DefaultType, FixedRanges, LayoutError, Plan, Region, Solution, Wanted};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::MAX_VARIABLE;

use super::args::Want;
use super::goal::{Goal, Scope};
use super::machine::Machine;

/// The fewest registers with default UC and with default WB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minimum {
    /// With default UC.
    pub uc: Option<usize>,
    /// With default WB.
    pub wb: Option<usize>,
}

impl Minimum {
    /// That of one default type.
    pub fn with(self, default: MemType) -> Option<usize> {
        match default {
            MemType::Uncachable => self.uc,
            MemType::WriteBack => self.wb,
            _ => None,
        }
    }

    /// The smaller of the two.
    pub fn best(self) -> Option<usize> {
        [self.uc, self.wb].into_iter().flatten().min()
    }

    /// The default type with the smaller one; `present` when equal.
    pub fn better(self, present: MemType) -> MemType {
        match (self.uc, self.wb) {
            (Some(uc), Some(wb)) if wb == uc && present == MemType::WriteBack => present,
            (Some(uc), Some(wb)) if wb < uc => MemType::WriteBack,
            (None, Some(_)) => MemType::WriteBack,
            _ => MemType::Uncachable,
        }
    }
}

/// What planning found for one map.
#[derive(Debug, Default)]
pub struct Advice {
    /// For exactly this map, AMD's TOP_MEM2 left out; below 1 MiB the fixed ranges decide.
    pub strict: Minimum,
    /// For exactly this map on this machine.
    pub here: Minimum,
    /// The same with addresses above RAM free.
    pub relaxed: Minimum,
    /// From where on they are free, and how that is known.
    pub free_from: Option<(u64, &'static str)>,
    /// With AMD's forced write-back below TOP_MEM2 relied on, default UC.
    pub with_top_mem2: Option<usize>,
    /// The exact layout with the better of the two defaults, the present one when equal.
    pub best: Option<Plan>,
    /// The exact layout with the present default type.
    pub present: Option<Plan>,
    /// The relaxed layout with the present default type.
    pub relaxed_present: Option<Plan>,
    /// The relaxed layout with the better of the two defaults.
    pub relaxed_best: Option<Plan>,
    /// Why there is no answer.
    pub failed: Option<String>,
}

/// Plans the map of `machine`, with `wants` painted over it.
pub fn advise(machine: &Machine, wants: &[Want]) -> Advice {
    let answer = Goal::new(machine, wants).and_then(|goal| {
        let advice = fill(machine, &goal);
        advice.map_err(|error| error.to_string())
    });
    answer.unwrap_or_else(|why| Advice {
        failed: Some(why),
        ..Advice::default()
    })
}

fn fill(machine: &Machine, goal: &Goal) -> Result<Advice, LayoutError> {
    let end = goal.acting.phys_bits.end();
    let mut advice = Advice {
        strict: minimum(&goal.about(&goal.alone, MAX_VARIABLE))?,
        here: goal.minimum(Scope::Exact)?,
        relaxed: goal.minimum(Scope::Relaxed)?,
        free_from: machine.free_from().filter(|(from, _)| *from < end),
        ..Advice::default()
    };
    if goal.forced > 0 {
        advice.with_top_mem2 = minimum(&goal.question(Scope::Exact, MAX_VARIABLE))?.uc;
    }
    let default = goal.default;
    advice.present = goal.fewest(Scope::Exact, default)?;
    advice.best = goal.fewest(Scope::Exact, advice.here.better(default))?;
    if advice.free_from.is_some() {
        advice.relaxed_present = goal.fewest(Scope::Relaxed, default)?;
        advice.relaxed_best = goal.fewest(Scope::Relaxed, advice.relaxed.better(default))?;
    }
    Ok(advice)
}

/// The fewest registers with the two defaults.
pub fn minimum(wanted: &Wanted<'_>) -> Result<Minimum, LayoutError> {
    let fewest = wanted.fewest()?;
    let some = |count: usize| (count < 1000).then_some(count);
    Ok(Minimum {
        uc: some(fewest.with_default(MemType::Uncachable)),
        wb: some(fewest.with_default(MemType::WriteBack)),
    })
}

/// Plans `regions` without a machine.
///
/// # Errors
/// Why there is no answer.
pub fn of_regions(
    bits: PhysBits,
    regions: &[Region],
) -> Result<(Minimum, Option<Plan>), LayoutError> {
    let wanted = Wanted::new(regions, bits, MAX_VARIABLE).fixed_ranges(FixedRanges::On);
    let minimum = minimum(&wanted)?;
    let better = minimum.better(MemType::Uncachable);
    Ok((minimum, exact(&wanted, better)?))
}

/// The exact layout with a given default, when 40 registers are enough.
pub fn exact(wanted: &Wanted<'_>, default: MemType) -> Result<Option<Plan>, LayoutError> {
    match wanted.default_type(DefaultType::Given(default)).plan()? {
        Solution::Exact(plan) => Ok(Some(plan)),
        _ => Ok(None),
    }
}

/// Start, size and type of each register of a plan.
pub fn blocks(plan: &Plan) -> Vec<(u64, u64, MemType)> {
    plan.registers()
        .iter()
        .filter_map(|pair| {
            let (start, size) = pair.block(plan.phys_bits())?;
            Some((start, size, pair.memtype().ok()?))
        })
        .collect()
}

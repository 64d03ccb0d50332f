//! How few variable ranges would do: minima, the layout behind them, and what a `--want` costs.

use mtrr_pat::layout::{
    DefaultType, FixedRanges, LayoutError, Outcome, Plan, Region, Scratch, Unlisted, Wanted,
    scratch_len,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::MAX_VARIABLE;
use mtrr_pat::snapshot::Snapshot;

use super::args::Want;
use super::machine::Machine;
use super::map::Map;

/// The fewest registers with default UC and with default WB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minimum {
    /// With default UC.
    pub uc: Option<usize>,
    /// With default WB.
    pub wb: Option<usize>,
}

impl Minimum {
    /// The smaller of the two.
    pub fn best(self) -> Option<usize> {
        [self.uc, self.wb].into_iter().flatten().min()
    }
}

/// What planning found for one map.
#[derive(Debug, Default)]
pub struct Advice {
    /// For exactly this map; below 1 MiB the fixed ranges decide.
    pub strict: Minimum,
    /// With addresses above RAM free.
    pub relaxed: Minimum,
    /// From where on they are free, and how that is known.
    pub free_from: Option<(u64, &'static str)>,
    /// With AMD's forced write-back below TOP_MEM2 relied on.
    pub with_top_mem2: Option<usize>,
    /// The strict layout with the better of the two defaults, the present one when equal.
    pub best: Option<Plan>,
    /// The strict layout with the present default type.
    pub present: Option<Plan>,
    /// Why there is no answer.
    pub failed: Option<String>,
}

/// The regions of the map the variable ranges of `snapshot` make.
pub fn regions(map: &Map) -> Vec<Region> {
    map.runs
        .iter()
        .map(|run| region(run.start, run.end, run.memtype.forced()))
        .collect()
}

/// A region; what is cacheable is taken for RAM.
fn region(start: u64, end: u64, memtype: MemType) -> Region {
    match memtype {
        MemType::Uncachable | MemType::WriteCombining => Region::mmio(start, end, memtype),
        _ => Region::ram(start, end, memtype),
    }
}

/// `regions` with `new` in place of what was there.
pub fn paint(regions: &[Region], new: Region) -> Vec<Region> {
    let mut out = Vec::with_capacity(regions.len() + 2);
    for old in regions {
        if old.start < new.start {
            out.push(Region {
                end: old.end.min(new.start),
                ..*old
            });
        }
        if old.end > new.end {
            out.push(Region {
                start: old.start.max(new.end),
                ..*old
            });
        }
    }
    out.push(new);
    out.sort_by_key(|region| region.start);
    out
}

/// The regions a list of wishes makes of `regions`.
pub fn with_wants(regions: &[Region], wants: &[Want]) -> Vec<Region> {
    wants.iter().fold(regions.to_vec(), |regions, want| {
        paint(&regions, region(want.start, want.end, want.memtype))
    })
}

/// Plans the map of `machine`, with `wants` painted over it.
pub fn advise(machine: &Machine, map: &Map, wants: &[Want]) -> Advice {
    let Some(snapshot) = machine.programmed() else {
        return Advice::default();
    };
    if map.cut {
        return Advice {
            failed: Some("the map has too many pieces to plan".into()),
            ..Advice::default()
        };
    }
    let regions = with_wants(&regions(map), wants);
    let mut advice = Advice {
        free_from: machine.free_from(),
        ..Advice::default()
    };
    if let Err(error) = fill(&mut advice, machine, &snapshot, &regions) {
        advice.failed = Some(error.to_string());
    }
    advice
}

/// A question about `regions` on a machine with as many registers as there can be.
fn question<'a>(snapshot: &Snapshot, regions: &'a [Region]) -> Wanted<'a> {
    Wanted::new(regions, snapshot.phys_bits, MAX_VARIABLE)
        .fixed_ranges(FixedRanges::On)
        .unlisted(Unlisted::Uncachable)
}

fn fill(
    advice: &mut Advice,
    machine: &Machine,
    snapshot: &Snapshot,
    regions: &[Region],
) -> Result<(), LayoutError> {
    let wanted = question(snapshot, regions);
    advice.strict = minimum(&wanted)?;
    advice.relaxed = advice.strict;
    let end = snapshot.phys_bits.end();
    if let Some((from, _)) = advice.free_from.filter(|(from, _)| *from < end) {
        let free = paint(regions, Region::dont_care(from, end));
        advice.relaxed = minimum(&question(snapshot, &free))?;
    }
    if let Some(end) = forced_end(machine) {
        let map = super::map::Map::new(machine.boot().unwrap_or(snapshot));
        let full = self::regions(&map);
        let wanted = question(snapshot, &full).forced_wb_below(end);
        advice.with_top_mem2 = minimum(&wanted)?.uc;
    }
    let default = snapshot.def_type.memtype().unwrap_or(MemType::Uncachable);
    advice.present = exact(&wanted, default)?;
    let better = match (advice.strict.uc, advice.strict.wb) {
        (Some(uc), Some(wb)) if wb < uc => MemType::WriteBack,
        (Some(uc), Some(wb)) if wb == uc && default == MemType::WriteBack => default,
        _ => MemType::Uncachable,
    };
    advice.best = exact(&wanted, better)?;
    Ok(())
}

/// TOP_MEM2, where it makes memory write-back.
pub fn forced_end(machine: &Machine) -> Option<u64> {
    use mtrr_pat::regs::SysCfg;
    let boot = machine.boot()?;
    let both = SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
    let acts = boot.syscfg?.contains(both) && boot.def_type.enabled();
    (acts && boot.top_mem2 > super::machine::FOUR_GIB).then_some(boot.top_mem2)
}

fn minimum(wanted: &Wanted<'_>) -> Result<Minimum, LayoutError> {
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
    let better = match (minimum.uc, minimum.wb) {
        (Some(uc), Some(wb)) if wb < uc => MemType::WriteBack,
        _ => MemType::Uncachable,
    };
    Ok((minimum, exact(&wanted, better)?))
}

/// The exact layout with a given default, when 40 registers are enough.
fn exact(wanted: &Wanted<'_>, default: MemType) -> Result<Option<Plan>, LayoutError> {
    match wanted.default_type(DefaultType::Given(default)).plan()? {
        Outcome::Exact(plan) => Ok(Some(plan)),
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

/// The plan with the registers there are that loses least of what `report` was asked for, and
/// what it loses.
///
/// # Errors
/// Why there is none.
pub fn least_damage(report: &super::report::Report) -> Result<(Plan, Vec<String>), String> {
    let machine = &report.machine;
    let snapshot = machine.programmed().ok_or("no MTRRs")?;
    let regions = with_wants(&regions(&Map::new(&snapshot)), &report.wants);
    let wanted = Wanted::new(&regions, snapshot.phys_bits, snapshot.variable_count())
        .fixed_ranges(FixedRanges::On);
    let words = scratch_len(snapshot.variable_count(), snapshot.phys_bits);
    let mut scratch = vec![Scratch::EMPTY; words];
    match wanted
        .plan_least_damage(&mut scratch)
        .map_err(|error| error.to_string())?
    {
        Outcome::Exact(plan) => Ok((plan, Vec::new())),
        Outcome::Relaxed { plan, .. } => {
            let losses = wanted.losses(&plan).map(|loss| {
                format!(
                    "{:#x}-{:#x} wanted {}, gets {}",
                    loss.start,
                    loss.end - 1,
                    loss.wanted.short(),
                    loss.got.short()
                )
            });
            Ok((plan, losses.collect()))
        }
        Outcome::Impossible { need, have } => Err(format!("{need} needed, {have} exist")),
    }
}

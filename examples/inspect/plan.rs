//! How few variable ranges would do: minima and the layouts behind them.

use mtrr_pat::layout::{
    DefaultType, FixedRanges, LayoutError, Outcome, Plan, Region, Unlisted, Want as Wish, Wanted,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MAX_VARIABLE, MtrrCap};
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
    fn better(self, present: MemType) -> MemType {
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

/// A map to be had on one machine.
#[derive(Debug)]
pub struct Goal {
    /// The registers as they act, E set.
    pub acting: Snapshot,
    /// The present default type.
    pub default: MemType,
    fixed: FixedRanges,
    /// TOP_MEM2 where it acts, else 0.
    forced: u64,
    /// TOP_MEM2 may make memory above 4 GiB write-back, unseen.
    unseen: bool,
    /// The map, and what it would be without TOP_MEM2.
    exact: Vec<Region>,
    alone: Vec<Region>,
    /// The same with addresses above RAM free.
    free: Vec<Region>,
    free_alone: Vec<Region>,
}

/// How much of the map is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Exact,
    /// Nothing above RAM.
    Relaxed,
}

/// The regions of a map.
fn regions(map: &Map) -> Vec<Region> {
    map.runs
        .iter()
        .map(|run| region(run.start, run.end, run.memtype.forced()))
        .collect()
}

/// A region; what is cacheable is taken for RAM.
pub fn region(start: u64, end: u64, memtype: MemType) -> Region {
    match memtype {
        MemType::Uncachable | MemType::WriteCombining => Region::mmio(start, end, memtype),
        _ => Region::ram(start, end, memtype),
    }
}

/// `regions` with `new` in place of what was there.
fn paint(regions: &[Region], new: Region) -> Vec<Region> {
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

/// `regions` with what is plain UC or WB from `from` on free.
fn freed(regions: &[Region], from: u64) -> Vec<Region> {
    let plain = [MemType::Uncachable, MemType::WriteBack].map(Wish::Type);
    let mut out = regions.to_vec();
    for old in regions {
        if old.end > from && plain.contains(&old.want) {
            out = paint(&out, Region::dont_care(old.start.max(from), old.end));
        }
    }
    out
}

impl Goal {
    /// The map of `machine` with `wants` painted over it.
    ///
    /// # Errors
    /// Why it cannot be planned.
    pub fn new(machine: &Machine, wants: &[Want]) -> Result<Self, String> {
        let acting = machine.acting().ok_or("the dump shows no MTRRs")?;
        if machine.gaps.variable() {
            return Err(format!("{} not in the input", machine.gaps.named()));
        }
        let map = Map::new(&acting);
        if map.cut {
            return Err("the map has too many pieces to plan".into());
        }
        let mut without = acting;
        without.syscfg = None;
        let forced = forced_end(&acting).unwrap_or(0);
        let (full, bare) = (regions(&map), regions(&Map::new(&without)));
        let end = acting.phys_bits.end();
        let from = machine.free_from().map_or(end, |(from, _)| from.min(end));
        let wanted = |regions: &[Region]| with_wants(regions, wants);
        Ok(Self {
            default: acting.def_type.memtype().unwrap_or(MemType::Uncachable),
            fixed: machine.fixed_ranges(),
            forced,
            unseen: machine.gaps.top_mem2,
            exact: wanted(&full),
            alone: wanted(&bare),
            free: wanted(&freed(&full, from)),
            free_alone: wanted(&freed(&bare, from)),
            acting,
        })
    }

    /// The question for the planner.
    pub fn question(&self, scope: Scope, registers: usize) -> Wanted<'_> {
        let regions = match scope {
            Scope::Exact => &self.exact,
            Scope::Relaxed => &self.free,
        };
        self.of(regions, registers)
    }

    /// A question about other regions of the same machine.
    pub fn of<'a>(&self, regions: &'a [Region], registers: usize) -> Wanted<'a> {
        self.about(regions, registers).forced_wb_below(self.forced)
    }

    /// The map with addresses above RAM free.
    pub fn free(&self) -> &[Region] {
        &self.free
    }

    /// A question about `regions`, TOP_MEM2 left out.
    fn about<'a>(&self, regions: &'a [Region], registers: usize) -> Wanted<'a> {
        let wanted = Wanted::new(regions, self.acting.phys_bits, registers)
            .fixed_ranges(self.fixed)
            .unlisted(Unlisted::Uncachable);
        match self.acting.cap {
            Some(cap) if !cap.contains(MtrrCap::WC) => wanted.without_write_combining(),
            _ => wanted,
        }
    }

    /// The layout with the fewest registers and this default type, when 40 are enough. One that
    /// does not need TOP_MEM2 is preferred where it gives the map.
    ///
    /// # Errors
    /// The question is flawed.
    pub fn fewest(&self, scope: Scope, default: MemType) -> Result<Option<Plan>, LayoutError> {
        let wanted = self.question(scope, MAX_VARIABLE);
        if self.forced > 0 {
            let alone = match scope {
                Scope::Exact => &self.alone,
                Scope::Relaxed => &self.free_alone,
            };
            let plan = exact(&self.about(alone, MAX_VARIABLE), default)?;
            if let Some(plan) = plan.filter(|plan| wanted.losses(plan).next().is_none()) {
                return Ok(Some(plan));
            }
        }
        let plan = exact(&wanted, default)?;
        Ok(plan.filter(|plan| !self.unseen || spares_high_memory(plan)))
    }

    /// How many registers that takes, more than 40 too.
    fn minimum(&self, scope: Scope) -> Result<Minimum, LayoutError> {
        let all = minimum(&self.question(scope, MAX_VARIABLE))?;
        let count = |default: MemType| -> Result<Option<usize>, LayoutError> {
            let plan = self.fewest(scope, default)?;
            let known = all.with(default).filter(|_| !self.unseen);
            Ok(plan.map_or(known, |plan| Some(plan.registers().len())))
        };
        Ok(Minimum {
            uc: count(MemType::Uncachable)?,
            wb: count(MemType::WriteBack)?,
        })
    }
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

/// Whether no range of `plan` makes memory above 4 GiB anything but write-back.
fn spares_high_memory(plan: &Plan) -> bool {
    let mut blocks = blocks(plan).into_iter();
    blocks.all(|(start, size, memtype)| {
        memtype == MemType::WriteBack || start + size <= super::machine::FOUR_GIB
    })
}

/// TOP_MEM2, where it makes memory write-back.
pub fn forced_end(snapshot: &Snapshot) -> Option<u64> {
    use mtrr_pat::regs::SysCfg;
    let both = SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
    let acts = snapshot.syscfg?.contains(both) && snapshot.def_type.enabled();
    (acts && snapshot.top_mem2 > super::machine::FOUR_GIB).then_some(snapshot.top_mem2)
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
    let better = minimum.better(MemType::Uncachable);
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

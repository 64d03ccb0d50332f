//! A map to be had on one machine: the questions for the planner, with all that decides.

use mtrr_pat::layout::{FixedRanges, LayoutError, Plan, Region, Unlisted, Want as Wish, Wanted};
use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::{MAX_VARIABLE, MtrrCap};
use mtrr_pat::snapshot::Snapshot;

use super::args::Want;
use super::machine::{FOUR_GIB, Machine};
use super::map::Map;
use super::plan::{self, Minimum, blocks, exact};

/// A map to be had on one machine.
#[derive(Debug)]
pub struct Goal {
    /// The registers as they act, E set.
    pub acting: Snapshot,
    /// The present default type.
    pub default: MemType,
    fixed: FixedRanges,
    /// TOP_MEM2 where it acts, else 0.
    pub forced: u64,
    /// TOP_MEM2 may make memory above 4 GiB write-back, unseen.
    unseen: bool,
    /// The map, and what it would be without TOP_MEM2.
    exact: Vec<Region>,
    pub alone: Vec<Region>,
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
        if !machine.map_whole() {
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
    pub fn about<'a>(&self, regions: &'a [Region], registers: usize) -> Wanted<'a> {
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
    pub fn minimum(&self, scope: Scope) -> Result<Minimum, LayoutError> {
        let all = plan::minimum(&self.question(scope, MAX_VARIABLE))?;
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

/// Whether no range of `plan` makes memory above 4 GiB anything but write-back.
fn spares_high_memory(plan: &Plan) -> bool {
    let mut blocks = blocks(plan).into_iter();
    blocks.all(|(start, size, memtype)| memtype == MemType::WriteBack || start + size <= FOUR_GIB)
}

/// TOP_MEM2, where it makes memory write-back.
pub fn forced_end(snapshot: &Snapshot) -> Option<u64> {
    use mtrr_pat::regs::SysCfg;
    let both = SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
    let acts = snapshot.syscfg?.contains(both) && snapshot.def_type.enabled();
    (acts && snapshot.top_mem2 > FOUR_GIB).then_some(snapshot.top_mem2)
}

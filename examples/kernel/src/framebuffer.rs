//! `wc=framebuffer`: a write-combining range for the display adapter's memory, planned on top of the firmware's map, given to all
//! CPUs while they run, checked on each of them, and taken back.

use crate::caching;
use crate::percpu::{self, SLOTS};
use crate::println;
use crate::racy::Racy;
use crate::regs::RegFile;
use crate::rounds::Verdict;
use core::fmt;
use core::ops::Range;
use mtrr_pat::layout::{Edit, LayoutError, Plan, Priority, Region, Scratch, Solution, scratch_len};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::snapshot::Snapshot;

/// What a plan takes that has to give something up, on machines with up to so many variable ranges.
const SCRATCH: usize = scratch_len(16, PhysBits::MAX);
static PLANNING: Racy<[Scratch; SCRATCH]> = Racy::new([Scratch::EMPTY; SCRATCH]);

/// The memory that the range is for.
#[derive(Clone)]
pub struct Area {
    pub range: Range<u64>,
    /// Whether a display adapter is there.
    pub adapter: bool,
}

impl Area {
    /// The display adapter's; without one 16 MiB of addresses where nothing is, so that everything but the display can be tried.
    pub fn find(bits: PhysBits) -> Self {
        let nowhere = bits.end() / 4 * 3;
        crate::pci::framebuffer().map_or(
            Self {
                range: nowhere..nowhere + (16 << 20),
                adapter: false,
            },
            |range| Self {
                range,
                adapter: true,
            },
        )
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.range;
        let kind = if self.adapter {
            "frame buffer of the display adapter"
        } else {
            "no display adapter: addresses where nothing is instead"
        };
        write!(f, "{start:#x}-{:#x}, {kind}", end - 1)
    }
}

/// A map for the machine, and what it gives up.
pub struct Planned {
    edit: Edit,
    plan: Plan,
    pub target: Snapshot,
    dropped: Range<u64>,
}

/// The map of `now` with another type for some memory. Touches as few registers as can be; where they do not reach, what lies above
/// all RAM loses its type; and where that does not help, the least damage is done, and printed.
#[inline(never)] // several KiB of stack
pub fn planned(
    now: &Snapshot,
    range: &Range<u64>,
    memtype: MemType,
    ram_end: u64,
) -> Result<Option<Planned>, LayoutError> {
    let mut edit = Edit::of(now)?;
    if ram_end != 0 {
        edit.ram_end(ram_end);
    }
    edit.set(Region::mmio(range.start, range.end, memtype).priority(Priority::High))?;
    match edit.fit() {
        Ok(fitted) => {
            println!("wc: {fitted}");
            return Ok(Some(Planned {
                edit,
                plan: fitted.plan,
                target: fitted.target,
                dropped: fitted.dropped.unwrap_or(0..0),
            }));
        }
        Err(error @ LayoutError::DoesNotFit { .. }) => println!("wc: {error}"),
        Err(error) => return Err(error),
    }
    // SAFETY: only the boot CPU plans, one plan at a time.
    let outcome = edit.replan_least_damage(unsafe { &mut *PLANNING.get() })?;
    Ok(match outcome {
        Solution::Exact(plan) | Solution::Relaxed { plan, .. } => Some(Planned {
            edit,
            plan,
            target: edit.target(&plan)?,
            dropped: 0..0,
        }),
        Solution::Impossible { .. } => None,
    })
}

impl Verdict {
    /// Adds the range on all CPUs, checks it, takes it back, checks that.
    pub fn framebuffer(&mut self, round: u32) {
        let Some(before) = self.expect("reading the target", caching::target()) else {
            return;
        };
        // Once: an adapter comes out of S3 without an address until its driver gives it the old one again.
        let area = self
            .area
            .get_or_insert_with(|| Area::find(before.phys_bits));
        let area = area.clone();
        println!("round {round}: wc: {area}");
        let raw_before = *caching::wanted();
        let plan = planned(&before, &area.range, MemType::WriteCombining, self.ram_end);
        let planned = match plan {
            Ok(Some(planned)) => planned,
            Ok(None) => {
                return println!("round {round}: wc: no plan is allowed to give so much up");
            }
            Err(error) => return self.failed(format_args!("wc: {error}")),
        };
        print_plan(round, &before, &planned.plan);
        for loss in planned
            .edit
            .losses(&planned.plan)
            .filter(|loss| loss.start < planned.dropped.start || planned.dropped.is_empty())
        {
            let (first, last) = (loss.start, loss.end - 1);
            let (wanted, got) = (loss.wanted, loss.got);
            println!("round {round}: wc: given up: {first:#x}-{last:#x} {wanted}, gets {got}");
        }
        if let Some(summary) = self.expect("adding the range", caching::change_to(&planned.target))
        {
            self.compare(round, None);
            for n in 0..percpu::count() {
                self.check_added(round, n, &area, &before, &planned);
            }
            println!("round {round}: wc: added on {} CPUs", summary.cpus);
        }
        if let Some(summary) = self.expect("taking it back", caching::change_to(&before)) {
            self.compare(round, None);
            for n in 0..percpu::count() {
                self.check_undone(n, &raw_before, &before);
            }
            println!("round {round}: wc: undone on {} CPUs", summary.cpus);
        }
    }

    /// CPU `n` has write-combining there by the crate's lookup *and* by its registers as read, and nothing changed elsewhere but
    /// what the plan said.
    fn check_added(
        &mut self,
        round: u32,
        n: usize,
        area: &Area,
        before: &Snapshot,
        planned: &Planned,
    ) {
        let registers = registers_of(n);
        let now = registers.snapshot(before);
        let looked_up = MtrrMap::new(&now).over(area.range.clone()).uniform();
        let Range { start, end } = area.range;
        let pages = [start, start + (end - start) / 2, end - 0x1000];
        let wc_alone = 1 << MemType::WriteCombining.raw();
        let raw = pages
            .map(|page| registers.variable_types_at(page))
            .map(|types| types == wc_alone);
        let announced = |start, end| {
            let holds = |first, behind| first <= start && end <= behind;
            holds(area.range.start, area.range.end)
                || holds(planned.dropped.start, planned.dropped.end)
                || (planned.edit.losses(&planned.plan)).any(|loss| holds(loss.start, loss.end))
        };
        let strays = MtrrMap::new(before)
            .differences(&MtrrMap::new(&now))
            .filter(|difference| !announced(difference.start, difference.end))
            .count();
        crate::print!("round {round}: wc: cpu {n}: the crate's lookup says ");
        match looked_up {
            Some(memtype) => crate::print!("{memtype}"),
            None => crate::print!("mixed"),
        }
        let right = raw.iter().filter(|right| **right).count();
        println!("; its registers WC alone on {right} of 3 pages; {strays} changes elsewhere");
        let right = looked_up == Some(MemType::WriteCombining.into());
        if !right || raw != [true; 3] || strays != 0 {
            self.failed(format_args!("CPU {n} does not have the range"));
        }
    }

    /// CPU `n` has every register as it was, and nothing is left of the range in the map.
    fn check_undone(&mut self, n: usize, raw_before: &RegFile, before: &Snapshot) {
        let registers = registers_of(n);
        let differs = registers.diff(raw_before).registers();
        let now = MtrrMap::new(&registers.snapshot(before));
        let strays = MtrrMap::new(before).differences(&now).count();
        if differs != 0 || strays != 0 {
            self.failed(format_args!(
                "CPU {n}: {differs} registers and {strays} ranges are not what they were"
            ));
        }
    }
}

/// What CPU `n` read for the last comparison.
fn registers_of(n: usize) -> &'static RegFile {
    // SAFETY: CPU `n` writes it only when asked, and has answered.
    unsafe { &*SLOTS[n].after.get() }
}

fn print_plan(round: u32, before: &Snapshot, plan: &Plan) {
    let used = before.variable_ranges().iter().filter(|pair| pair.valid());
    println!(
        "round {round}: wc: planned, {} of {} variable ranges where {} were used: {}",
        plan.registers().len(),
        before.variable_count(),
        used.count(),
        OneLine(plan)
    );
}

/// A plan on one line of the log.
struct OneLine<'a>(&'a Plan);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "default {}", self.0.default_type().short())?;
        self.0.registers().iter().try_for_each(|pair| {
            match (pair.block(self.0.phys_bits()), pair.memtype()) {
                (Some((start, bytes)), Ok(memtype)) => {
                    write!(f, ", {start:#x}+{bytes:#x} {}", memtype.short())
                }
                _ => write!(f, ", {pair:?}"),
            }
        })
    }
}

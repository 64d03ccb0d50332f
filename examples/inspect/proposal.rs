//! The layout to use for a map somebody needs: the one that changes least, else the exact one,
//! else one that loses nothing that matters, else the least damage.

use std::collections::BTreeMap;

use mtrr_pat::layout::{
    DefaultType, Edit, Kind, LayoutError, Plan, Priority, Region, Scratch, Solution, scratch_len,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::{FIXED_END, FIXED_RANGES, FixedSlot};
use mtrr_pat::regs::MAX_VARIABLE;
use mtrr_pat::snapshot::Snapshot;

use super::args::Want;
use super::echo::{self, Lines};
use super::goal::{Goal, Scope, region};
use super::machine::Machine;

/// How a layout came to be the one proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing there goes, this many ranges come.
    Added(usize),
    /// Exactly the map, all planned anew.
    Exact,
    /// All of it but what lies above RAM.
    Relaxed {
        /// From where on.
        from: u64,
        /// How that is known.
        why: &'static str,
    },
    /// The registers do not reach: what is given up.
    Damaged(Vec<String>),
}

/// A layout, and how to get there.
#[derive(Debug)]
pub struct Proposal {
    /// The layout.
    pub plan: Plan,
    /// How it came about.
    pub way: Way,
    /// The lines for /proc/mtrr, or why there are none.
    pub lines: Result<Lines, String>,
    /// What the fixed ranges have to be, in sentences.
    pub fixed: Vec<String>,
}

impl Proposal {
    /// `plan` on `machine`.
    pub fn new(machine: &Machine, goal: &Goal, plan: Plan, way: Way) -> Self {
        Self {
            plan,
            way,
            lines: lines(machine, &goal.acting, &plan),
            fixed: Vec::new(),
        }
    }
}

/// The lines for /proc/mtrr, where it can do it.
fn lines(machine: &Machine, acting: &Snapshot, plan: &Plan) -> Result<Lines, String> {
    if machine.boot().is_some_and(|boot| !boot.def_type.enabled()) {
        return Err("it cannot turn the MTRRs on, which is for firmware or the kernel".into());
    }
    if machine.is_listed() {
        return Err("which register holds what is not in the input: paste /proc/mtrr".into());
    }
    echo::lines(acting, plan, &machine.dump.usage)
}

/// The layout for the map of `machine` with `wants` in it.
///
/// # Errors
/// Why there is none.
pub fn of(machine: &Machine, wants: &[Want]) -> Result<Proposal, String> {
    let goal = Goal::new(machine, wants)?;
    let total = match machine.is_listed() {
        true => machine.dump.stated_count.map_or(MAX_VARIABLE, usize::from),
        false => goal.acting.variable_count(),
    };
    let fixed = fixed_changes(machine, &goal.acting, wants)?;
    if total == 0 && wants.iter().any(|want| want.end > FIXED_END) {
        let text = "the processor has no variable ranges: only page tables, through the PAT, can \
                    give memory another type";
        return Err(text.into());
    }
    let (plan, way) = chosen(machine, &goal, wants, total)?;
    let mut proposal = Proposal::new(machine, &goal, plan, way);
    proposal.fixed = fixed;
    Ok(proposal)
}

fn chosen(
    machine: &Machine,
    goal: &Goal,
    wants: &[Want],
    total: usize,
) -> Result<(Plan, Way), String> {
    let added = (!machine.is_listed()).then(|| added(goal, wants)).flatten();
    if let Some((plan, count)) = added {
        return Ok((plan, Way::Added(count)));
    }
    let other = match goal.default {
        MemType::WriteBack => MemType::Uncachable,
        _ => MemType::WriteBack,
    };
    let free = machine.free_from();
    for default in [goal.default, other] {
        for scope in [Scope::Exact, Scope::Relaxed] {
            let way = match (scope, free) {
                (Scope::Exact, _) => Way::Exact,
                (Scope::Relaxed, Some((from, why))) => Way::Relaxed { from, why },
                (Scope::Relaxed, None) => continue,
            };
            let plan = goal
                .fewest(scope, default)
                .map_err(|error| error.to_string())?;
            if let Some(plan) = plan.filter(|plan| plan.registers().len() <= total) {
                return Ok((plan, way));
            }
        }
    }
    let (plan, losses) = least_damage(goal, wants, total)?;
    Ok((plan, Way::Damaged(losses)))
}

/// The ranges there are and some more, when that gives the map; and how many more.
fn added(goal: &Goal, wants: &[Want]) -> Option<(Plan, usize)> {
    let plan = edited(&goal.acting, wants).ok()?.1?;
    let used: Vec<_> = goal
        .acting
        .variable_ranges()
        .iter()
        .filter(|pair| pair.valid())
        .collect();
    let blocks =
        |pair: &mtrr_pat::regs::VariableMtrr| (pair.block(plan.phys_bits()), pair.memtype());
    let kept = |old: &&mtrr_pat::regs::VariableMtrr| {
        plan.registers()
            .iter()
            .any(|new| blocks(new) == blocks(old))
    };
    let count = plan.registers().len().checked_sub(used.len())?;
    used.iter().all(kept).then_some((plan, count))
}

/// The registers with `wants` set one by one; the plan where it can be had that way.
fn edited(acting: &Snapshot, wants: &[Want]) -> Result<(Snapshot, Option<Plan>), LayoutError> {
    let mut edit = Edit::of(acting)?;
    if let Ok(default) = acting.def_type.memtype() {
        edit.default_type(DefaultType::Given(default));
    }
    for want in wants {
        edit.set(region(want.start, want.end, want.memtype))?;
    }
    let Solution::Exact(plan) = edit.plan()? else {
        return Ok((*acting, None));
    };
    Ok((edit.target(&plan)?, Some(plan)))
}

/// What `wants` change below 1 MiB, where the fixed ranges decide: a sentence per register.
fn fixed_changes(
    machine: &Machine,
    acting: &Snapshot,
    wants: &[Want],
) -> Result<Vec<String>, String> {
    if !acting.fixed_in_force() {
        return Ok(Vec::new());
    }
    let low = |want: &Want| Want {
        end: want.end.min(FIXED_END),
        ..*want
    };
    let low: Vec<Want> = wants
        .iter()
        .filter(|want| want.start < FIXED_END)
        .map(low)
        .collect();
    let mut after = *acting;
    if machine.fixed_known {
        for want in &low {
            // One at a time: an edit of the fixed ranges alone always has a plan.
            after = edited(&after, &[*want])
                .map_err(|error| error.to_string())?
                .0;
        }
    }
    let mut touched: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for want in &low {
        let mut at = want.start;
        while let Some(slot) = FixedSlot::of(at).filter(|_| at < want.end) {
            touched.entry(slot.register).or_default().push(slot.start);
            at = slot.end;
        }
    }
    let sentence = |(register, starts): (usize, Vec<u64>)| {
        let range = FIXED_RANGES.get(register)?;
        let place = format!(
            "{} ({:#x}-{:#x})",
            range.msr,
            range.base,
            range.base + range.step * 8 - 1
        );
        if machine.fixed_known {
            let (old, new) = (acting.fixed.get(register)?, after.fixed.get(register)?);
            return (old != new).then(|| format!("{place}: {new:#018x} in place of {old:#018x}"));
        }
        let types = low
            .iter()
            .find(|want| starts.iter().any(|at| (want.start..want.end).contains(at)));
        let name = types.map_or("?", |want| want.memtype.short());
        let count = starts.len();
        Some(format!(
            "{place}: {count} of its 8 bytes {name}; what it holds now is not in the dump"
        ))
    };
    Ok(touched.into_iter().filter_map(sentence).collect())
}

/// The plan with the registers there are that loses least, and what it loses. RAM is lost last,
/// and what lies above RAM does not count.
fn least_damage(goal: &Goal, wants: &[Want], total: usize) -> Result<(Plan, Vec<String>), String> {
    let mut scratch = vec![Scratch::EMPTY; scratch_len(total, goal.acting.phys_bits)];
    let urgent = |old: &Region| match old.kind {
        Kind::Ram => old.priority(Priority::High),
        Kind::Mmio => *old,
    };
    let regions: Vec<Region> = goal.free().iter().map(urgent).collect();
    let mut best: Option<(Plan, u64, Vec<String>)> = None;
    for default in [DefaultType::Given(goal.default), DefaultType::Free] {
        let wanted = goal.of(&regions, total).default_type(default);
        let outcome = wanted
            .plan_least_damage(&mut scratch)
            .map_err(|error| error.to_string())?;
        let (Solution::Exact(plan) | Solution::Relaxed { plan, .. }) = outcome else {
            continue;
        };
        let lost = wanted.lost(&plan).total();
        if best.as_ref().is_none_or(|(_, least, _)| lost < *least) {
            let losses = wanted.losses(&plan).map(|loss| {
                let (first, last) = (loss.start, loss.end - 1);
                let (wish, got) = (loss.wanted.short(), loss.got.short());
                format!("{first:#x}-{last:#x} wanted {wish}, gets {got}")
            });
            best = Some((plan, lost, losses.collect()));
        }
    }
    let count = wants.len();
    let none = || format!("no layout of {total} registers comes near ({count} ranges asked for)");
    best.map(|(plan, _, losses)| (plan, losses))
        .ok_or_else(none)
}

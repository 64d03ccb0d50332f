//! A layout as lines for /proc/mtrr: in an order that never makes a device cacheable on the way.

use mtrr_pat::layout::Plan;
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::snapshot::Snapshot;

use super::map::Map;

/// One line for /proc/mtrr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// `disable=N`.
    Drop(usize),
    /// `base=.. size=.. type=..`.
    Add(VariableMtrr),
}

/// The lines, and what to know before running them.
#[derive(Debug)]
pub struct Lines {
    /// Shell lines, in order.
    pub lines: Vec<String>,
    /// An address that is uncachable or write-combining before and after, and cacheable for a
    /// moment in between.
    pub exposed: Option<u64>,
}

/// The shell lines that turn the ranges of `programmed` into `plan`, whose default type must be
/// the present one: /proc/mtrr cannot change that.
///
/// # Errors
/// Why it cannot be done on a running system.
pub fn lines(programmed: &Snapshot, plan: &Plan) -> Result<Lines, String> {
    if programmed.def_type.memtype() != Ok(plan.default_type()) {
        return Err("the default type would change, which /proc/mtrr cannot do".into());
    }
    let target = target(programmed, plan);
    let mut best: Result<Lines, String> = Err("nothing to do".into());
    for order in [
        Order::KeepCacheable,
        Order::RebuildCacheable,
        Order::DropFirst,
    ] {
        let steps = steps(programmed, plan, order);
        match play(programmed, &target, &steps) {
            Ok(exposed) => {
                let lines = steps.iter().map(|step| line(step, programmed)).collect();
                let found = Lines { lines, exposed };
                if exposed.is_none() {
                    return Ok(found);
                }
                if best.is_err() {
                    best = Ok(found);
                }
            }
            Err(why) if best.is_err() => best = Err(why),
            Err(_) => {}
        }
    }
    best
}

/// Which ranges go before others come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Cacheable ranges that go, new uncachable ones, uncachable ones that go, new cacheable ones.
    KeepCacheable,
    /// The same, with every cacheable range made anew.
    RebuildCacheable,
    /// All that goes, then all that comes, uncachable ones first.
    DropFirst,
}

/// The register file with the plan in it.
pub fn target(programmed: &Snapshot, plan: &Plan) -> Snapshot {
    let mut target = *programmed;
    for slot in &mut target.variable {
        *slot = VariableMtrr::default();
    }
    for (slot, pair) in target.variable.iter_mut().zip(plan.registers()) {
        *slot = *pair;
    }
    target
}

/// Whether two ranges cover the same block with the same type.
fn same_range(a: &VariableMtrr, b: &VariableMtrr, snapshot: &Snapshot) -> bool {
    let bits = snapshot.phys_bits;
    a.valid() && b.valid() && a.memtype() == b.memtype() && a.block(bits) == b.block(bits)
}

/// The steps in some order; larger ranges come before smaller ones.
fn steps(programmed: &Snapshot, plan: &Plan, order: Order) -> Vec<Step> {
    let cacheable = |pair: &VariableMtrr| {
        !matches!(
            pair.memtype(),
            Ok(MemType::Uncachable | MemType::WriteCombining)
        )
    };
    let kept = |pair: &VariableMtrr| {
        !(order == Order::RebuildCacheable && cacheable(pair))
            && plan
                .registers()
                .iter()
                .any(|new| same_range(new, pair, programmed))
    };
    let old: Vec<(usize, VariableMtrr)> = programmed
        .variable_ranges()
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, pair)| pair.valid() && !kept(pair))
        .collect();
    let mut new: Vec<VariableMtrr> = plan
        .registers()
        .iter()
        .copied()
        .filter(|pair| {
            let there = |old: &VariableMtrr| same_range(old, pair, programmed) && kept(old);
            !programmed.variable_ranges().iter().any(there)
        })
        .collect();
    new.sort_by_key(|pair| std::cmp::Reverse(pair.block(programmed.phys_bits).map(|b| b.1)));
    let drops = |want: bool| {
        old.iter()
            .filter(move |(_, pair)| cacheable(pair) == want)
            .map(|(n, _)| Step::Drop(*n))
    };
    let adds = |want: bool| {
        new.iter()
            .filter(move |pair| cacheable(pair) == want)
            .map(|pair| Step::Add(*pair))
    };
    let (cold_drops, cold_adds) = (drops(false), adds(false));
    if order == Order::DropFirst {
        let drops = drops(true).chain(cold_drops);
        return drops.chain(cold_adds).chain(adds(true)).collect();
    }
    drops(true)
        .chain(cold_adds)
        .chain(cold_drops)
        .chain(adds(true))
        .collect()
}

/// Plays the steps as Linux takes them: a free slot for every addition, no addition it refuses or
/// takes for one it has, and the promised map at the end. Returns an address exposed on the way.
fn play(programmed: &Snapshot, target: &Snapshot, steps: &[Step]) -> Result<Option<u64>, String> {
    let (before, after) = (Map::new(programmed), Map::new(target));
    let mut now = *programmed;
    let mut found = None;
    let count = programmed.variable_count();
    for step in steps {
        match step {
            Step::Drop(index) => {
                if let Some(slot) = now.variable.get_mut(*index) {
                    *slot = VariableMtrr::default();
                }
            }
            Step::Add(pair) => {
                accepted(&now, pair)?;
                let mut slots = now.variable.iter_mut().take(count);
                let slot = slots.find(|slot| !slot.valid());
                *slot.ok_or("no register is free on the way")? = *pair;
            }
        }
        found = found.or_else(|| exposed(&before, &Map::new(&now), &after));
    }
    if Map::new(&now).same_above_fixed(&after) {
        Ok(found)
    } else {
        Err("the lines would not give that map".into())
    }
}

/// Whether Linux takes a new range as one: beside others, or around or inside one of another
/// type that may overlap it (UC with anything, WB with WT).
fn accepted(now: &Snapshot, new: &VariableMtrr) -> Result<(), String> {
    let bits = now.phys_bits;
    let cold = Ok(MemType::Uncachable);
    for old in now.variable_ranges().iter().filter(|old| old.valid()) {
        let (Some((start, size)), Some((at, bytes))) = (new.block(bits), old.block(bits)) else {
            return Err("a mask in use has holes, which /proc/mtrr cannot handle".into());
        };
        if start >= at + bytes || at >= start + size {
            continue;
        }
        let pair = [new.memtype(), old.memtype()];
        let through = [Ok(MemType::WriteBack), Ok(MemType::WriteThrough)];
        let mixed = pair.iter().all(|memtype| through.contains(memtype));
        if pair[0] == pair[1] || !(pair.contains(&cold) || mixed) {
            return Err(format!("{start:#x} overlaps a range it cannot be added to"));
        }
    }
    Ok(())
}

/// An address that is not cacheable before and after, but is now.
fn exposed(before: &Map, now: &Map, after: &Map) -> Option<u64> {
    let cold = |memtype: Option<MtrrType>| {
        let memtype = memtype.map(MtrrType::forced);
        matches!(memtype, Some(MemType::Uncachable | MemType::WriteCombining))
    };
    let starts = |map: &'_ Map| map.runs.iter().map(|run| run.start).collect::<Vec<u64>>();
    let mut edges: Vec<u64> = [before, now, after].into_iter().flat_map(starts).collect();
    edges.sort_unstable();
    edges.dedup();
    edges.into_iter().find(|addr| {
        *addr >= mtrr_pat::ranges::FIXED_END
            && cold(before.at(*addr))
            && cold(after.at(*addr))
            && !cold(now.at(*addr))
    })
}

/// The shell line of a step.
fn line(step: &Step, snapshot: &Snapshot) -> String {
    match step {
        Step::Drop(index) => format!("echo \"disable={index}\" > /proc/mtrr"),
        Step::Add(pair) => {
            let (base, size) = pair.block(snapshot.phys_bits).unwrap_or_default();
            let name = pair
                .memtype()
                .map_or("?".to_string(), |memtype| memtype.to_string());
            format!("echo \"base={base:#x} size={size:#x} type={name}\" > /proc/mtrr")
        }
    }
}

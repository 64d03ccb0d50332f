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

/// The shell lines that turn the ranges of `programmed` into `plan`, whose default type must be
/// the present one: /proc/mtrr cannot change that.
///
/// # Errors
/// Why it cannot be done on a running system.
pub fn lines(programmed: &Snapshot, plan: &Plan) -> Result<Vec<String>, String> {
    if programmed.def_type.memtype() != Ok(plan.default_type()) {
        return Err("the default type would change, which /proc/mtrr cannot do".into());
    }
    let target = target(programmed, plan);
    let first = steps(programmed, plan, false);
    let steps = if safe(programmed, &target, &first).is_ok() {
        first
    } else {
        let all = steps(programmed, plan, true);
        safe(programmed, &target, &all)?;
        all
    };
    Ok(steps.iter().map(|step| line(step, programmed)).collect())
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

/// Cacheable ranges that go, then new uncachable ones, then uncachable ones that go, then the
/// new cacheable ones, large before small. With `rebuild`, no cacheable range is kept.
fn steps(programmed: &Snapshot, plan: &Plan, rebuild: bool) -> Vec<Step> {
    let cacheable = |pair: &VariableMtrr| {
        !matches!(
            pair.memtype(),
            Ok(MemType::Uncachable | MemType::WriteCombining)
        )
    };
    let kept = |pair: &VariableMtrr| {
        !(rebuild && cacheable(pair))
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
    drops(true)
        .chain(adds(false))
        .chain(drops(false))
        .chain(adds(true))
        .collect()
}

/// Plays the steps: a free slot for every addition, nothing that is uncachable or write-combining
/// before and after is cacheable in between, and the promised map at the end.
fn safe(programmed: &Snapshot, target: &Snapshot, steps: &[Step]) -> Result<(), String> {
    let (before, after) = (Map::new(programmed), Map::new(target));
    let mut now = *programmed;
    let count = programmed.variable_count();
    for step in steps {
        match step {
            Step::Drop(index) => {
                if let Some(slot) = now.variable.get_mut(*index) {
                    *slot = VariableMtrr::default();
                }
            }
            Step::Add(pair) => {
                let slot = now
                    .variable
                    .iter_mut()
                    .take(count)
                    .find(|slot| !slot.valid());
                *slot.ok_or("no register is free on the way")? = *pair;
            }
        }
        let map = Map::new(&now);
        if let Some(addr) = exposed(&before, &map, &after) {
            return Err(format!(
                "{addr:#x}, where a device may be, would be cacheable on the way"
            ));
        }
    }
    if Map::new(&now).same_above_fixed(&after) {
        Ok(())
    } else {
        Err("the lines would not give that map".into())
    }
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

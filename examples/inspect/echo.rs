//! A layout as lines for /proc/mtrr, in the order that disturbs least: no device is ever cached
//! on the way, and RAM stays cached, if the registers allow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use mtrr_pat::layout::Plan;
use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::{MAX_VARIABLE, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::harm::{Harm, Judge};
use super::proc_mtrr::{Block, ProcMtrr};

/// States reached before the search only hurries to the end, and before it gives up.
const PATIENCE: usize = 3_000;
const LIMIT: usize = 12_000;

/// One line for /proc/mtrr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// `disable=N`.
    Drop(usize),
    /// `base=.. size=.. type=..`.
    Add(Block),
}

/// Whether ranges may go that come again, and others come that go again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detours {
    Without,
    With,
}

/// The lines, and what to know before running them.
#[derive(Debug)]
pub struct Lines {
    /// Shell lines, in order.
    pub lines: Vec<String>,
    /// The worst that happens in between.
    pub harm: Harm,
}

/// The shell lines that turn the ranges of `acting` into `plan`, whose default type must be the
/// present one: /proc/mtrr cannot change that.
///
/// # Errors
/// Why it cannot be done on a running system.
pub fn lines(acting: &Snapshot, plan: &Plan, usage: &BTreeMap<u8, u32>) -> Result<Lines, String> {
    if acting.def_type.memtype() != Ok(plan.default_type()) {
        return Err("the default type would change, which /proc/mtrr cannot do".into());
    }
    let start = ProcMtrr::of(acting)?;
    let target = target(acting, plan);
    let goal = ProcMtrr::of(&target)?.blocks();
    let judge = Judge::new(acting, &target);
    // Most maps need no detour, and without any there is much less to search.
    let found = search(&start, &goal, &judge, Detours::Without)
        .filter(|(_, harm)| *harm == Harm::default())
        .or_else(|| search(&start, &goal, &judge, Detours::With));
    let (steps, harm) = found.ok_or("no order of lines is accepted all the way")?;
    Ok(Lines {
        lines: shell(start, &steps, usage),
        harm,
    })
}

/// The shell lines of `steps` from `state` on. A range goes when it was disabled as often as it is
/// in use, which `usage` tells where it is more than once.
fn shell(mut state: ProcMtrr, steps: &[Step], usage: &BTreeMap<u8, u32>) -> Vec<String> {
    let mut usage = usage.clone();
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Drop(index) => {
                let count = usage.remove(&(*index as u8)).unwrap_or(1);
                out.extend(repeated(line(step), count));
                state.disable(*index);
            }
            Step::Add(block) => {
                let before = state.clone();
                state.add(*block);
                let mut slots = before.slots.iter().zip(&state.slots);
                let taken = slots.position(|(old, new)| old != new);
                // One that grows keeps its users, and has one more.
                if let Some(index) = taken.filter(|index| before.slots[*index].is_some()) {
                    *usage.entry(index as u8).or_insert(1) += 1;
                }
                out.push(line(step));
            }
        }
    }
    out
}

/// `line` as often as it takes.
fn repeated(line: String, count: u32) -> Vec<String> {
    const MOST: u32 = 8;
    match count {
        0..=MOST => vec![line; count.max(1) as usize],
        _ => vec![format!("for n in $(seq {count}); do {line}; done")],
    }
}

/// The register file with the plan in it.
pub fn target(acting: &Snapshot, plan: &Plan) -> Snapshot {
    let mut target = *acting;
    target.variable = [VariableMtrr::default(); MAX_VARIABLE];
    for (slot, pair) in target.variable.iter_mut().zip(plan.registers()) {
        *slot = *pair;
    }
    target
}

/// The way to one state: what it cost, the line that led to it, and from where.
struct Reached {
    state: ProcMtrr,
    step: Option<(Step, usize)>,
    cost: u64,
    harm: Harm,
}

/// The cheapest order of lines, or after [`PATIENCE`] the first one found.
fn search(
    start: &ProcMtrr,
    goal: &[Block],
    judge: &Judge,
    detours: Detours,
) -> Option<(Vec<Step>, Harm)> {
    let mut reached = vec![Reached {
        state: start.clone(),
        step: None,
        cost: 0,
        harm: Harm::default(),
    }];
    let mut queue = BinaryHeap::from([(Reverse(0), 0)]);
    let mut seen: HashSet<Vec<Block>> = HashSet::new();
    while let Some((_, at)) = queue.pop() {
        let blocks = reached[at].state.blocks();
        if blocks == goal {
            return Some((way(&reached, at), reached[at].harm));
        }
        if !seen.insert(blocks) {
            continue;
        }
        if reached.len() > LIMIT {
            return None;
        }
        for (step, state) in moves(&reached[at].state, goal, detours) {
            let blocks = state.blocks();
            if seen.contains(&blocks) {
                continue;
            }
            let harm = if blocks == goal {
                Harm::default()
            } else {
                judge.of(&state)
            };
            let cost = reached[at].cost + harm.cost();
            // Past its patience, the search goes straight on.
            let hurry = if reached.len() < PATIENCE { 1 } else { 100_000 };
            let bound = cost + left(&blocks, goal) * hurry;
            queue.push((Reverse(bound), reached.len()));
            reached.push(Reached {
                state,
                step: Some((step, at)),
                cost,
                harm: reached[at].harm.worst(harm),
            });
        }
    }
    None
}

/// The lines from the start to one state.
fn way(reached: &[Reached], mut at: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some((step, from)) = reached[at].step {
        steps.push(step);
        at = from;
    }
    steps.reverse();
    steps
}

/// How many ranges are too many and how many are missing.
fn left(blocks: &[Block], goal: &[Block]) -> u64 {
    let missing = goal.iter().filter(|block| !blocks.contains(block)).count();
    let extra = blocks.iter().filter(|block| !goal.contains(block)).count();
    (missing + extra) as u64
}

/// What can be done next: ranges that go, ranges that come, and for ranges that must go before
/// their successors fit inside them, the same bytes as write-through meanwhile.
fn moves(state: &ProcMtrr, goal: &[Block], detours: Detours) -> Vec<(Step, ProcMtrr)> {
    let mut out = Vec::new();
    let blocks = state.blocks();
    let stays = |block: &Block| detours == Detours::Without && goal.contains(block);
    for (index, slot) in state.slots.iter().enumerate() {
        if slot.as_ref().is_none_or(stays) {
            continue;
        }
        let mut next = state.clone();
        next.disable(index);
        out.push((Step::Drop(index), next));
    }
    let back = MemType::WriteBack.raw();
    let stand_in = |block: &Block| block.with_type(MemType::WriteThrough);
    let leaving = blocks
        .iter()
        .filter(|block| block.memtype == back && !goal.contains(block));
    let leaving = leaving.filter(|_| detours == Detours::With);
    let adds = goal.iter().copied().chain(leaving.map(stand_in));
    for block in adds.filter(|block| !blocks.contains(block)) {
        let mut next = state.clone();
        if next.add(block) {
            out.push((Step::Add(block), next));
        }
    }
    out
}

/// The shell line of a step.
fn line(step: &Step) -> String {
    match step {
        Step::Drop(index) => format!("echo \"disable={index}\" > /proc/mtrr"),
        Step::Add(block) => {
            let Block { start, size, .. } = block;
            let name = block.memtype();
            format!("echo \"base={start:#x} size={size:#x} type={name}\" > /proc/mtrr")
        }
    }
}

//! Layouts in `--json`: what `--want` costs, and what repairs a map.

use mtrr_pat::layout::Plan;
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use serde_json::{Value, json};

use super::args::Want;
use super::goal;
use super::json::hex;
use super::plan::{self, Minimum};
use super::proposal::Way;
use super::repair::Repair;
use super::report::Report;
use super::verdict::State;

/// Base, size and type of each register.
pub fn layout(plan: &Plan) -> Vec<Value> {
    let entry = |(base, size, memtype): (u64, u64, MemType)| json!({ "base": hex(base), "size": hex(size), "type": memtype.short() });
    plan::blocks(plan).into_iter().map(entry).collect()
}

/// The layout proposed.
pub fn proposed(report: &Report) -> Value {
    let advice = report.wanted.as_ref();
    let mut out = json!({
        "min_here": advice.map(|advice| pair(advice.here)),
        "min_relaxed": advice.map(|advice| pair(advice.relaxed)),
        "free_from": advice.and_then(|advice| advice.free_from).map(|(from, _)| hex(from)),
    });
    let proposal = match &report.proposal {
        Some(Ok(proposal)) => proposal,
        Some(Err(why)) => {
            out["failed"] = json!(why);
            return out;
        }
        None => {
            out["failed"] = json!(advice.and_then(|advice| advice.failed.as_ref()));
            return out;
        }
    };
    let (way, given_up) = match &proposal.way {
        Way::Added(_) => ("added", [].as_slice()),
        Way::Exact => ("exact", [].as_slice()),
        Way::Relaxed { .. } => ("relaxed", [].as_slice()),
        Way::Damaged(losses) => ("damaged", losses.as_slice()),
    };
    out["failed"] = Value::Null;
    out["way"] = json!(way);
    out["default"] = json!(proposal.plan.default_type().short());
    out["layout"] = json!(layout(&proposal.plan));
    out["commands"] = json!(
        proposal
            .lines
            .as_ref()
            .map_or(&[][..], |found| &found.lines)
    );
    out["refused"] = json!(proposal.lines.as_ref().err());
    out["given_up"] = json!(given_up);
    out["fixed"] = json!(proposal.fixed);
    out
}

/// The same for RAM that has to become write-back.
pub fn repair(report: &Report, repair: &Repair) -> Value {
    let mut out = proposed(report);
    let range = |want: &Want| json!({ "start": hex(want.start), "end": hex(want.end - 1) });
    out["ram"] = json!(repair.wants.iter().map(range).collect::<Vec<_>>());
    out
}

/// A layout for the wishes alone, without a machine.
pub fn from_nothing(bits: PhysBits, wants: &[Want]) -> Value {
    let text = "no dump: a layout for what is wanted alone";
    let mut out = json!({
        "verdict": { "state": State::Unknown.name(), "text": text },
        "phys_bits": bits.get(),
        "map": [],
        "variable": [],
        "findings": [],
        "cpus": [],
    });
    out["want"] = match plan::of_regions(bits, &goal::with_wants(&[], wants)) {
        Ok((minimum, best)) => json!({
            "min_here": pair(minimum),
            "failed": null,
            "default": best.as_ref().map(|plan| plan.default_type().short()),
            "layout": best.as_ref().map(layout),
        }),
        Err(why) => json!({ "failed": why.to_string() }),
    };
    out
}

fn pair(minimum: Minimum) -> Value {
    json!({ "UC": minimum.uc, "WB": minimum.wb })
}

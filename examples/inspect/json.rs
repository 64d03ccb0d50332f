//! `--json`: one object with keys that stay.

use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::routing::Routing;
use serde_json::{Value, json};

use super::changes::Change;
use super::gaps::Whole;
use super::goal;
use super::plan::{Advice, Minimum};
use super::report::Report;
use super::{json_plan, json_type, map, verdict};

/// The object for `report`.
pub fn object(report: &Report) -> Value {
    let machine = &report.machine;
    let boot = machine.boot();
    let known = |known: bool, value: Option<bool>| if known { json!(value) } else { Value::Null };
    let enabled = boot.map(|boot| boot.def_type.enabled());
    let has_mtrr = boot.is_some_and(|boot| boot.cap.is_some());
    let verdict = verdict::of(report);
    json!({
        "verdict": { "state": verdict.state.name(), "text": verdict.text, "fix": verdict.fix },
        "phys_bits": machine.bits.get(),
        "phys_bits_from": machine.bits_from.name(),
        "enabled": known(has_mtrr && machine.on_known(), enabled),
        "fixed_enabled": known(
            machine.fixed_enabled_known(),
            boot.map(|boot| boot.def_type.fixed_enabled()),
        ),
        "default": boot.filter(|_| has_mtrr && machine.default_known).map(|boot| type_name(boot.def_type.memtype().ok())),
        "complete": match (has_mtrr, machine.gaps.whole) {
            (false, _) | (_, Whole::No) => json!(false),
            (_, Whole::Yes) => json!(true),
            (_, Whole::Unproved) => Value::Null,
        },
        "missing": machine.missing(),
        "top_mem2_write_back": boot.and_then(goal::forced_end).map(hex),
        "map": map_of(report, machine.map_known()),
        "variable": variable(report),
        "changes": report.changes.iter().map(change).collect::<Vec<_>>(),
        "findings": findings(report),
        "registers": registers(report),
        "cpus": cpus(report),
        "pat": boot.and_then(|boot| boot.pat).map(pat),
        "routing": machine.routing.first().map(routing),
        "want": (!report.wants.is_empty()).then(|| json_plan::proposed(report)),
        "repair": report.repair.as_ref().map(|repair| json_plan::repair(report, repair)),
        "type": report.addr.map(|addr| json_type::answer(report, addr)),
    })
}

/// From one state in the input to the next.
fn change(change: &Change) -> Value {
    let memory = change.memory.iter().map(|memory| {
        json!({
            "start": hex(memory.start),
            "end": hex(memory.end - 1),
            "before": map::short(memory.before.memtype),
            "after": map::short(memory.after.memtype),
        })
    });
    json!({
        "from_line": change.from,
        "memory": memory.collect::<Vec<_>>(),
        "registers": change.registers,
    })
}

/// Registers that only firmware sets; what is not known is null.
fn routing(of: &Routing) -> Value {
    let iorr = of.iorr.map(|iorr| {
        iorr.map(
            |iorr| json!({ "base": hex(iorr.base), "mask": hex(iorr.mask), "valid": iorr.valid() }),
        )
    });
    json!({
        "top_mem": of.top_mem.map(hex),
        "iorr": iorr,
        "tme_activate": of.tme_activate.map(hex),
    })
}

/// An address.
pub fn hex(addr: u64) -> Value {
    Value::String(format!("{addr:#x}"))
}

fn type_name(memtype: Option<MemType>) -> &'static str {
    memtype.map_or("undefined", MemType::short)
}

fn map_of(report: &Report, has_mtrr: bool) -> Vec<Value> {
    if !has_mtrr {
        return Vec::new();
    }
    let pieces = report.doubt.pieces(&report.map);
    pieces
        .iter()
        .map(|piece| {
            let shown = map::short(piece.run.memtype);
            json!({
                "start": hex(piece.run.start),
                "end": hex(piece.run.end - 1),
                "type": if piece.certain { shown } else { "unknown" },
                "shown": shown,
            })
        })
        .collect()
}

fn variable(report: &Report) -> Vec<Value> {
    let Some(boot) = report.machine.in_dump() else {
        return Vec::new();
    };
    boot.variable_ranges()
        .iter()
        .enumerate()
        .map(|(index, pair)| {
            if !report.machine.shows(index) {
                return json!({
                    "index": index, "base": null, "mask": null, "type": null, "valid": null,
                    "note": "not in the input",
                });
            }
            json!({
                "index": index,
                "base": hex(address(pair.base)),
                "mask": hex(address(pair.mask)),
                "type": type_name(pair.memtype().ok()),
                "valid": pair.valid(),
                "note": report.notes.get(index).cloned().unwrap_or_default(),
            })
        })
        .collect()
}

/// The address bits of a base or mask word, those above the width included.
fn address(word: u64) -> u64 {
    word & !(PhysBits::MIN.page_mask() ^ (PhysBits::MIN.end() - 1))
}

fn findings(report: &Report) -> Vec<Value> {
    report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": finding.severity.name(),
                "kind": finding.kind,
                "start": finding.range.map(|range| hex(range.0)),
                "end": finding.range.map(|range| hex(range.1)),
                "text": finding.text,
                "fix": finding.fix,
            })
        })
        .collect()
}

fn registers(report: &Report) -> Value {
    let advice = report.advice.as_ref();
    let minimum = |pick: fn(&Advice) -> Minimum| {
        let minimum = advice.map(pick).unwrap_or_default();
        json!({ "UC": minimum.uc, "WB": minimum.wb })
    };
    let best = advice.and_then(|advice| advice.best.as_ref());
    let layout = best.map(json_plan::layout).unwrap_or_default();
    json!({
        "used": (!report.machine.is_listed()).then(|| report.used()),
        "total": report.machine.count_known.then(|| report.total()),
        "min_strict": minimum(|advice| advice.strict),
        "min_here": minimum(|advice| advice.here),
        "min_relaxed": minimum(|advice| advice.relaxed),
        "layout": layout,
    })
}

fn cpus(report: &Report) -> Vec<Value> {
    report
        .standings
        .iter()
        .map(|standing| {
            json!({
                "cpu": standing.cpu, "differs": standing.differs, "missing": standing.missing
            })
        })
        .collect()
}

fn pat(word: Pat) -> Vec<&'static str> {
    (0..8)
        .map(|slot| word.slot(slot).map_or("reserved", PatType::short))
        .collect()
}

// V and the type are no address bits.
const _: () = assert!(VariableMtrr::V < 0x1000);

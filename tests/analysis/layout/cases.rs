//! Real machines and maps people asked for, with the fewest registers as an independent search
//! found them: `tests/data/cases/*/facts.json`.

use std::fs;
use std::path::Path;

use mtrr_pat::compare::SameMap;
use mtrr_pat::layout::{DefaultType, Edit, FixedRanges, Region, Solution, Unlisted};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use serde_json::Value;

use super::check::check;
use super::naive::Problem;

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("addresses are strings");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("addresses are hexadecimal")
}

fn memtype(value: &Value) -> MemType {
    let name = value.as_str().expect("types are strings");
    let mut types = MemType::ALL.into_iter();
    let found = types.find(|memtype| memtype.short() == name);
    found.unwrap_or_else(|| panic!("{name} is no type"))
}

/// A map of the facts, WB as RAM and the rest as MMIO.
fn problem(facts: &Value, map: &str, bits: &str) -> Option<Problem> {
    let regions = facts.get(map)?.as_array().expect("a map is a list").iter();
    let regions = regions.map(|run| {
        let (start, end) = (number(&run[0]), number(&run[1]) + 1);
        match memtype(&run[2]) {
            MemType::WriteBack => Region::ram(start, end, MemType::WriteBack),
            other => Region::mmio(start, end, other),
        }
    });
    let width = facts[bits].as_u64()? as u8;
    let mut problem = Problem::new(width, regions.collect());
    problem.fixed = FixedRanges::On;
    Some(problem)
}

/// The boot CPU's variable ranges, the fixed ranges on, TOP_MEM2 as given.
fn snapshot(facts: &Value, top_mem2: u64) -> Option<Snapshot> {
    let width = facts.get("phys_bits")?.as_u64()? as u8;
    let mut snapshot = Snapshot::empty(PhysBits::new(width).expect("a width"));
    snapshot.cap = Some(MtrrCap::from_raw(40 | 1 << 8 | 1 << 10));
    let default = memtype(&facts["default"]).raw();
    snapshot.def_type = MtrrDefType::from_raw(0xc00 | u64::from(default));
    let ranges = facts["variable"].as_array().expect("ranges are a list");
    for (slot, range) in snapshot.variable.iter_mut().zip(ranges) {
        slot.base = number(&range[0]) | u64::from(memtype(&range[2]).raw());
        slot.mask = number(&range[1]) | VariableMtrr::V;
    }
    snapshot.syscfg = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
    snapshot.top_mem2 = top_mem2;
    Some(snapshot)
}

/// The map of the registers alone: the figures leave TOP_MEM2 out.
fn from_registers(facts: &Value) -> Option<Problem> {
    facts.get("min_uc")?;
    let snapshot = snapshot(facts, 0)?;
    let edit = Edit::of(&snapshot).expect("the MTRRs are on");
    let mut problem = Problem::new(snapshot.phys_bits.get(), edit.regions().to_vec());
    problem.fixed = FixedRanges::On;
    Some(problem)
}

/// The same with what lies above the top of RAM not cared about.
fn relaxed(mut problem: Problem) -> Problem {
    let wb = |region: &Region| *region == Region::ram(region.start, region.end, MemType::WriteBack);
    let last = problem.regions.iter().rposition(wb).expect("there is RAM");
    problem.regions.truncate(last + 1);
    problem.unlisted = Unlisted::DontCare;
    problem
}

/// Compares one figure; says whether there was one.
fn compare(name: &str, facts: &Value, key: &str, problem: &Problem, default: MemType) -> u32 {
    let Some(want) = facts.get(key).and_then(Value::as_u64) else {
        return 0;
    };
    let wanted = problem.wanted(40).default_type(DefaultType::Given(default));
    let fewest = wanted.fewest().expect("the map is sound");
    assert_eq!(fewest.with_default(default) as u64, want, "{name}: {key}");
    let outcome = wanted.plan().expect("the map is sound");
    check(problem, &outcome, 40);
    match outcome {
        Solution::Exact(plan) => assert_eq!(plan.registers().len() as u64, want),
        other => panic!("{name}: {other:?}"),
    }
    let few = wanted.keep_free(41 - want as usize).plan();
    let (need, have) = (want as usize, want as usize - 1);
    assert_eq!(few, Ok(Solution::Impossible { need, have }), "{name}");
    1
}

#[test]
fn figures_of_every_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let (mut strict, mut lenient) = (0, 0);
    for case in fs::read_dir(&cases).expect("the cases are there") {
        let path = case.expect("a case can be listed").path();
        let Ok(text) = fs::read_to_string(path.join("facts.json")) else {
            continue;
        };
        let name = path.display().to_string();
        let facts: Value = serde_json::from_str(&text).expect("facts are JSON");
        let asked = problem(&facts, "wanted", "wanted_phys_bits");
        for (exact, prefix) in [(from_registers(&facts), ""), (asked, "wanted_")] {
            let Some(exact) = exact else {
                continue;
            };
            for (default, suffix) in [(MemType::Uncachable, "uc"), (MemType::WriteBack, "wb")] {
                let key = format!("{prefix}min_{suffix}");
                strict += compare(&name, &facts, &key, &exact, default);
                let key = format!("{prefix}relaxed_{suffix}");
                if facts.get(&key).is_some() {
                    let free = relaxed(exact.clone());
                    lenient += compare(&name, &facts, &key, &free, default);
                }
            }
        }
        same_map(&name, &facts);
    }
    assert!(strict >= 52, "{strict} strict figures");
    assert!(lenient >= 20, "{lenient} relaxed figures");
}

/// The facts' own map, in which TOP_MEM2 counts: what the firmware's registers give, and what a
/// new plan for it gives.
fn same_map(name: &str, facts: &Value) {
    let top_mem2 = facts.get("tom2").filter(|tom2| tom2.is_string());
    let top_mem2 = top_mem2.map_or(0, number);
    let (Some(mut problem), Some(snapshot)) = (
        problem(facts, "map", "phys_bits").filter(|_| facts.get("min_uc").is_some()),
        snapshot(facts, top_mem2),
    ) else {
        return;
    };
    problem.top_mem2 = top_mem2;
    let used = snapshot
        .variable
        .iter()
        .filter(|range| range.valid())
        .count();
    let edit = Edit::of(&snapshot).expect("the MTRRs are on");
    let Ok(Solution::Exact(plan)) = edit.replan() else {
        panic!("{name}: forty registers are enough");
    };
    check(&problem, &Solution::Exact(plan), used);
    assert_eq!(
        edit.target(&plan).unwrap().same_map(&snapshot),
        SameMap::Same
    );
    // In place, nothing changes.
    let Ok(Solution::Exact(plan)) = edit.plan() else {
        panic!("{name}: nothing was asked");
    };
    assert_eq!(edit.target(&plan).unwrap(), snapshot);
}

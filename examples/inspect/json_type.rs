//! `--type` in `--json`: the type of one address, and of pages there.

use mtrr_pat::combine::{CombineRule, Effective};
use mtrr_pat::lookup::{MtrrMap, Source};
use mtrr_pat::memtype::PatType;
use serde_json::{Value, json};

use super::json::hex;
use super::map;
use super::report::Report;

/// What is at `addr`; null where the dump does not tell.
pub fn answer(report: &Report, addr: u64) -> Value {
    let boot = report.machine.boot().filter(|_| report.machine.map_known());
    let Some(snapshot) = boot else {
        return json!({ "addr": hex(addr), "type": null });
    };
    let map = MtrrMap::new(snapshot);
    let found = map.at(addr);
    let by = match found.source {
        Source::BeyondWidth => {
            return json!({ "addr": hex(addr), "type": null, "by": "beyond width" });
        }
        Source::NoMtrr => "no MTRRs",
        Source::Disabled => "off",
        Source::Fixed(_) => "fixed",
        Source::Variable { .. } | Source::TopMem2 if report.machine.is_listed() => "kernel map",
        Source::Variable { .. } => "variable",
        Source::TopMem2 => "TOP_MEM2",
        Source::Default => "default",
    };
    let last = map
        .runs_in(addr..map.end())
        .next()
        .map(|run| hex(run.end - 1));
    let slots = |pat: PatType| -> Vec<u8> {
        let word = snapshot.pat;
        let holds = |slot: &u8| word.is_some_and(|word| word.slot(*slot) == Ok(pat));
        (0..8).filter(holds).collect()
    };
    let pages = PatType::ALL.into_iter().filter(|pat| match report.pat {
        Some(asked) => asked == *pat,
        None => !slots(*pat).is_empty(),
    });
    let pages = pages.map(|pat| {
        let under = |rule| Effective::combine(found.memtype, pat, rule).page.short();
        json!({
            "page": pat.short(),
            "slots": slots(pat),
            "intel": under(CombineRule::Intel),
            "amd": under(CombineRule::Amd),
        })
    });
    json!({
        "addr": hex(addr),
        "type": map::short(found.memtype),
        "by": by,
        "certain": !report.doubt.touches(addr, addr.saturating_add(1)),
        "last": last,
        "page": map.largest_page(addr).bytes(),
        "pages": pages.collect::<Vec<_>>(),
    })
}

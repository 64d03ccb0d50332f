//! How few registers would do, and layouts, as a person reads them.

use std::fmt::Write as _;

use mtrr_pat::layout::Plan;
use mtrr_pat::ranges::PhysBits;

use super::args::Want;
use super::goal::{self, Goal};
use super::map;
use super::plan::{self, Advice, Minimum};
use super::proposal::{Proposal, Way};
use super::report::Report;
use super::style::Look;
use super::text_parts::{address_width, wrapped};
use super::width::BitsFrom;

/// Where the width is from, for a person.
pub fn bits_source(from: BitsFrom) -> &'static str {
    match from {
        BitsFrom::Log => "the log",
        BitsFrom::Masks => "the masks",
        BitsFrom::Flag => "--phys-bits",
        BitsFrom::Cpuid => "CPUID",
        BitsFrom::Assumed => "an assumption",
    }
}

/// Registers used and needed for the map as it is, and the layouts that achieve it.
pub fn advice(report: &Report, advice: &Advice, look: Look) -> String {
    let mut out = format!(
        "\n{}\n",
        look.heading("Fewest variable ranges for this map")
    );
    if let Some(why) = &advice.failed {
        let _ = writeln!(out, "  not planned: {why}");
        return out;
    }
    let now = match report.machine.is_listed() {
        true => "not in the input".into(),
        false => report.used().to_string(),
    };
    let _ = writeln!(
        out,
        "  exactly this map: {} (now: {now})",
        counts(advice.here)
    );
    out.push_str(&relaxed(advice, look));
    if let Some(count) = advice.with_top_mem2 {
        let _ = writeln!(out, "  relying on TOP_MEM2 for memory above 4 GiB: {count}");
    }
    if report.repair.is_some() {
        out.push_str("  no layout for it: it leaves RAM out; the one to use is at the top\n");
        return out;
    }
    match Goal::new(&report.machine, &[]) {
        Ok(goal) if report.machine.is_listed() => {
            out.push_str(&listed(report, advice, &goal, look));
        }
        Ok(goal) => out.push_str(&layouts(report, advice, &goal, look)),
        Err(why) => drop(writeln!(out, "  not planned: {why}")),
    }
    out
}

/// A layout for the map that the kernel printed.
fn listed(report: &Report, advice: &Advice, goal: &Goal, look: Look) -> String {
    let mut out = caution(report, look);
    if let Some(best) = &advice.best {
        let proposal = Proposal::new(&report.machine, goal, *best, Way::Exact);
        out.push_str(&steps(&proposal, look));
    }
    out
}

/// What a plan takes for granted that is made from the kernel's list.
pub fn caution(report: &Report, look: Look) -> String {
    let machine = &report.machine;
    let default = machine.boot().and_then(|boot| boot.def_type.memtype().ok());
    let (Some(default), false) = (default, machine.default_known) else {
        return String::new();
    };
    let text = format!(
        "  made from the kernel's list, which tells no default type: what the list leaves out is \
         taken for {default}"
    );
    wrapped(&text, look.columns, "    ") + "\n"
}

/// The layouts that free registers, each with its lines.
fn layouts(report: &Report, advice: &Advice, goal: &Goal, look: Look) -> String {
    let used = report.used();
    let proposed = |plan: &Plan| Proposal::new(&report.machine, goal, *plan, Way::Exact);
    let useless = report.notes.iter().any(|note| !note.is_empty());
    let frees = |plan: &&Plan| plan.registers().len() < used;
    let mut out = String::new();
    let Some(best) = &advice.best else {
        return "  more than 40 registers would be needed\n".into();
    };
    if best.registers().len() >= used && !useless {
        out.push_str("  already minimal\n");
    } else {
        let _ = writeln!(
            out,
            "  {} can be freed",
            used.saturating_sub(best.registers().len())
        );
        out.push_str(&steps(&proposed(best), look));
        let other = |plan: &&Plan| plan.default_type() != best.default_type();
        if let Some(present) = advice.present.as_ref().filter(other) {
            let name = present.default_type().short();
            let count = present.registers().len();
            let _ = writeln!(out, "  with the present default {name}: {count} registers");
            if frees(&present) {
                out.push_str(&steps(&proposed(present), look));
            }
        }
    }
    let exact = advice
        .present
        .as_ref()
        .map_or(used, |plan| plan.registers().len().min(used));
    let fewer = |plan: &&Plan| plan.registers().len() < exact;
    let least = |plan: &&Plan| frees(plan) && plan.registers().len() < best.registers().len();
    let relaxed = advice.relaxed_present.as_ref().filter(fewer);
    let relaxed = relaxed.or(advice.relaxed_best.as_ref().filter(least));
    if let (Some(plan), Some((from, _))) = (relaxed, advice.free_from) {
        let free = used - plan.registers().len();
        let _ = writeln!(
            out,
            "  if nothing above {from:#x} matters, {free} can be freed"
        );
        out.push_str(&steps(&proposed(plan), look));
    }
    out
}

/// A layout, and below it the lines that lead to it.
pub fn steps(proposal: &Proposal, look: Look) -> String {
    layout(&proposal.plan) + &shell(proposal, look)
}

/// `3 with default UC, 4 with default WB`
pub fn counts(minimum: Minimum) -> String {
    let one = |count: Option<usize>| count.map_or("no way".to_string(), |count| count.to_string());
    format!(
        "{} with default UC, {} with default WB",
        one(minimum.uc),
        one(minimum.wb)
    )
}

/// The same where nothing above RAM matters.
pub fn relaxed(advice: &Advice, look: Look) -> String {
    let Some((from, why)) = advice.free_from else {
        return String::new();
    };
    let text = format!(
        "  if nothing above {from:#x} matters ({why}): {}",
        counts(advice.relaxed)
    );
    wrapped(&text, look.columns, "    ") + "\n"
}

/// The values to write.
fn layout(plan: &Plan) -> String {
    let bits = plan.phys_bits();
    let width = address_width(bits);
    let mut out = format!("  layout (default {}):\n", plan.default_type());
    if plan.registers().is_empty() {
        return out + "      no register at all\n";
    }
    let _ = writeln!(
        out,
        "   #  {:<width$}  {:<width$}        size  type",
        "PHYSBASE", "PHYSMASK"
    );
    for (index, pair) in plan.registers().iter().enumerate() {
        let (_, size) = pair.block(bits).unwrap_or_default();
        let name = pair
            .memtype()
            .map_or("?".into(), |memtype| memtype.to_string());
        let _ = writeln!(
            out,
            "  {index:>2}  {:<#width$x}  {:<#width$x}  {:>10}  {name}",
            pair.base,
            pair.mask,
            map::bytes(size),
        );
    }
    out
}

/// The lines for /proc/mtrr, and what happens between them.
fn shell(proposal: &Proposal, look: Look) -> String {
    let said = |text: &str| wrapped(text, look.columns, "    ") + "\n";
    let found = match &proposal.lines {
        Ok(found) if found.lines.is_empty() => return String::new(),
        Ok(found) => found,
        Err(why) => return said(&format!("  not through /proc/mtrr: {why}")),
    };
    let mut out = String::from(if found.harm.uncached > 0 {
        "  on Linux, as root (RAM is uncached in between, which is slow):\n"
    } else {
        "  on Linux, as root:\n"
    });
    if let Some(addr) = found.harm.exposed {
        out.push_str(&said(&format!(
            "  ({addr:#x}, where a device may be, is not uncachable by MTRR for a moment: page \
             tables still keep it so, but do it on an idle machine)"
        )));
    }
    for line in &found.lines {
        let _ = writeln!(out, "    {line}");
    }
    out
}

/// A layout for the wishes alone, without a machine.
pub fn from_nothing(bits: PhysBits, wants: &[Want]) -> String {
    let regions = goal::with_wants(&[], wants);
    let mut out = format!(
        "A layout for {} address bits; what is not named is uncachable, the first MiB left to the \
         fixed ranges\n",
        bits.get()
    );
    match plan::of_regions(bits, &regions) {
        Ok((minimum, best)) => {
            let _ = writeln!(out, "  exactly: {}", counts(minimum));
            out.push_str(&best.map_or(String::new(), |plan| layout(&plan)));
        }
        Err(why) => {
            let _ = writeln!(out, "  not planned: {why}");
        }
    }
    out
}

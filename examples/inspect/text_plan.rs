//! How few registers would do, as a person reads it.

use std::fmt::Write as _;

use mtrr_pat::layout::Plan;
use mtrr_pat::ranges::PhysBits;

use super::args::Want;
use super::echo;
use super::map;
use super::plan::{self, Advice, Minimum};
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

/// Registers used and needed, and the layout that achieves it.
pub fn advice(report: &Report, advice: &Advice, look: Look) -> String {
    let mut out = format!(
        "\n{}\n",
        look.heading("Fewest variable ranges for this map")
    );
    if let Some(why) = &advice.failed {
        let _ = writeln!(out, "  not planned: {why}");
        return out;
    }
    let used = report.used();
    let _ = writeln!(
        out,
        "  exactly this map: {} (now: {used})",
        counts(advice.strict)
    );
    out.push_str(&relaxed(advice, look));
    if let Some(count) = advice.with_top_mem2 {
        let _ = writeln!(out, "  relying on TOP_MEM2 for memory above 4 GiB: {count}");
    }
    let Some(best) = &advice.best else {
        let _ = writeln!(out, "  more than 40 registers would be needed");
        return out;
    };
    if best.registers().len() >= used && !report.notes.iter().any(|note| !note.is_empty()) {
        out.push_str("  already minimal\n");
        return out;
    }
    if best.registers().len() < used {
        let _ = writeln!(out, "  {} can be freed", used - best.registers().len());
    }
    out.push_str(&layout(best));
    if let Some(present) = &advice.present {
        if present.default_type() != best.default_type() {
            let _ = writeln!(
                out,
                "  with the present default {}: {} registers",
                present.default_type().short(),
                present.registers().len()
            );
        }
        out.push_str(&shell(report, present, look));
    }
    out
}

/// `3 with default UC, 4 with default WB`
fn counts(minimum: Minimum) -> String {
    let one = |count: Option<usize>| count.map_or("no way".to_string(), |count| count.to_string());
    format!(
        "{} with default UC, {} with default WB",
        one(minimum.uc),
        one(minimum.wb)
    )
}

fn relaxed(advice: &Advice, look: Look) -> String {
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

/// The lines for /proc/mtrr.
fn shell(report: &Report, plan: &Plan, look: Look) -> String {
    let Some(programmed) = report.machine.programmed() else {
        return String::new();
    };
    if report
        .machine
        .boot()
        .is_some_and(|boot| !boot.def_type.enabled())
    {
        return "  /proc/mtrr cannot turn the MTRRs on: that is for firmware or the kernel\n"
            .into();
    }
    match echo::lines(&programmed, plan) {
        Ok(found) if found.lines.is_empty() => String::new(),
        Ok(found) => {
            let mut out = String::from("  on Linux, as root (RAM may be slow in between):\n");
            if let Some(addr) = found.exposed {
                let text = format!(
                    "  ({addr:#x}, where a device may be, is not uncachable by MTRR for a moment: \
                     page tables still keep it so, but do it on an idle machine)"
                );
                let _ = writeln!(out, "{}", wrapped(&text, look.columns, "   "));
            }
            for line in found.lines {
                let _ = writeln!(out, "    {line}");
            }
            out
        }
        Err(why) => {
            wrapped(
                &format!("  not through /proc/mtrr: {why}"),
                look.columns,
                "    ",
            ) + "\n"
        }
    }
}

/// What `--want` costs.
pub fn wanted(report: &Report, advice: &Advice, look: Look) -> String {
    let mut out = format!("\n{}\n", look.heading("With what you want"));
    if let Some(why) = &advice.failed {
        let _ = writeln!(out, "  not planned: {why}");
        return out;
    }
    let _ = writeln!(out, "  exactly: {}", counts(advice.strict));
    out.push_str(&relaxed(advice, look));
    let total = report.total();
    let need = advice.strict.best().unwrap_or(usize::MAX);
    if total == 0 {
        if let Some(best) = &advice.best {
            out.push_str(&layout(best));
        }
        return out;
    }
    let now = report.advice.as_ref().and_then(|now| now.strict.best());
    let cost = now.map_or(String::new(), |now| {
        format!(
            " ({} more than the same map without)",
            need.saturating_sub(now)
        )
    });
    if need <= total {
        let _ = writeln!(out, "  it fits: {need} of {total} registers{cost}");
    } else {
        let _ = writeln!(out, "  it does not fit: {need} needed, {total} exist");
        out.push_str(&least_damage(report));
        return out;
    }
    if let Some(best) = &advice.best {
        out.push_str(&layout(best));
    }
    if let Some(present) = &advice.present {
        out.push_str(&shell(report, present, look));
    }
    out
}

/// The best that fits, and what it gives up.
fn least_damage(report: &Report) -> String {
    match plan::least_damage(report) {
        Ok((plan, losses)) => {
            let mut out = String::from("  the best that fits:\n");
            out.push_str(&layout(&plan));
            for loss in losses {
                let _ = writeln!(out, "  given up: {loss}");
            }
            out
        }
        Err(why) => format!("  and nothing else helps: {why}\n"),
    }
}

/// A layout for the wishes alone, without a machine.
pub fn from_nothing(bits: PhysBits, wants: &[Want]) -> String {
    let regions = plan::with_wants(&[], wants);
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

//! Parts of the text report: CPUs, the PAT, line breaking.

use std::fmt::Write as _;

use mtrr_pat::memtype::PatType;
use mtrr_pat::ranges::PhysBits;

use super::differs;
use super::report::Report;
use super::routing;
use super::style::Look;

/// CPUs that differ, when there is more than one.
pub fn cpus(report: &Report, look: Look) -> String {
    let standings = &report.standings;
    if standings.len() < 2 {
        return String::new();
    }
    let title = format!(
        "CPUs: {} compared with CPU {}",
        standings.len(),
        standings[0].cpu
    );
    let mut out = format!("\n{}\n", look.heading(&title));
    let lines = differs::lines(&report.machine, standings);
    let missing = differs::missing_somewhere(standings);
    if lines.is_empty() && missing.is_empty() {
        out.push_str("  all in sync: the same memory types everywhere\n");
    }
    if !missing.is_empty() {
        let lead = if lines.is_empty() {
            "no difference in what the input shows; "
        } else {
            ""
        };
        let text = format!("  {lead}not all shown of every CPU: {}", missing.join(", "));
        let _ = writeln!(out, "{}", wrapped(&text, look.columns, "    "));
    }
    for line in lines {
        let _ = writeln!(
            out,
            "{}",
            wrapped(&format!("  {line}"), look.columns, "    ")
        );
    }
    let odd: Vec<u32> = standings
        .iter()
        .filter(|s| s.harmless)
        .map(|s| s.cpu)
        .collect();
    if !odd.is_empty() {
        let text = format!(
            "  {}: words differ only where it does not matter (pairs with V=0, order)",
            differs::named(&report.machine, &odd)
        );
        let _ = writeln!(out, "{}", wrapped(&text, look.columns, "    "));
    }
    out
}

/// Registers by which firmware says what memory an address means, as far as they are shown.
pub fn routing(report: &Report, look: Look) -> String {
    let lines = routing::lines(&report.machine);
    let mut out = String::new();
    if !lines.is_empty() {
        let _ = writeln!(out, "\n{}", look.heading("Set by firmware alone"));
    }
    for line in lines {
        let line = wrapped(&format!("  {line}"), look.columns, "    ");
        let _ = writeln!(out, "{line}");
    }
    out
}

/// The eight PAT types, and what the kernel made of them.
pub fn pat(report: &Report, look: Look) -> String {
    let dump = &report.machine.dump;
    let boot_pat = report.machine.boot().and_then(|boot| boot.pat);
    let mut out = String::new();
    if let Some(pat) = boot_pat {
        let _ = writeln!(out, "\n{}", look.heading("PAT"));
        let _ = writeln!(out, "  slots 0-7: {pat}  ({:#x})", pat.raw());
        let types: Vec<&str> = PatType::ALL
            .into_iter()
            .filter(|wanted| (0..8).any(|slot| pat.slot(slot) == Ok(*wanted)))
            .map(PatType::short)
            .collect();
        let missing: Vec<&str> = PatType::ALL
            .into_iter()
            .map(PatType::short)
            .filter(|name| !types.contains(name))
            .collect();
        let reach = format!("  page tables reach: {}", types.join(", "));
        let lack = match missing.is_empty() {
            true => String::new(),
            false => format!("; not: {}", missing.join(", ")),
        };
        let _ = writeln!(out, "{reach}{lack}");
    }
    if let Some(after) = dump
        .pat_after
        .filter(|after| Some(*after) != boot_pat.map(|p| p.raw()))
    {
        let after = mtrr_pat::pat::Pat::from_raw(after);
        let _ = writeln!(
            out,
            "  then the kernel wrote: {after}  ({:#x})",
            after.raw()
        );
    }
    if dump.no_pat {
        let _ = writeln!(out, "\n{}\n  the processor has none", look.heading("PAT"));
    }
    out
}

/// Columns of an address with its `0x`, so that all of a table are as long.
pub fn address_width(bits: PhysBits) -> usize {
    usize::from(bits.get()).div_ceil(4) + 2
}

/// `text` broken into lines of at most `columns`, later ones starting with `indent`.
pub fn wrapped(text: &str, columns: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    out.push_str(&lead);
    length += lead.len();
    for (n, word) in text.split_whitespace().enumerate() {
        let long = word.chars().count();
        if n > 0 && length + 1 + long > columns {
            out.push('\n');
            out.push_str(indent);
            length = indent.len();
        } else if n > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += long;
    }
    out
}

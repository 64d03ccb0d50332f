//! The report as a person reads it.

use std::fmt::Write as _;

use super::report::Report;
use super::style::Look;
use super::text_parts::{cpus, pat, routing, wrapped};
use super::verdict::{self, State, Verdict};
use super::{text_changes, text_map, text_plan, text_proposed};

/// The whole report: the verdict, what to do, the map, and the rest.
pub fn draw(report: &Report, look: Look) -> String {
    let verdict = verdict::of(report);
    let mut out = verdict_line(&verdict, look);
    out.push_str(&text_changes::draw(report, look));
    match (&report.repair, &report.wanted) {
        (_, Some(wanted)) if !report.wants.is_empty() => {
            out.push_str(&text_proposed::wanted(report, wanted, look));
        }
        (Some(repair), _) => out.push_str(&text_proposed::repair(report, repair, look)),
        _ if !verdict.fix.is_empty() => {
            let fix = wrapped(&format!("  fix: {}", verdict.fix), look.columns, "       ");
            let _ = writeln!(out, "{fix}");
        }
        _ if report.crowded() => out.push_str(&fewest(report, look)),
        _ => {}
    }
    out.push('\n');
    out.push_str(&head(report, look));
    if report.machine.map_known() {
        out.push_str(&text_map::table(report, look));
        out.push_str(&text_map::registers(report, look));
    }
    out.push_str(&notes(report, look));
    out.push_str(&routing(report, look));
    out.push_str(&findings(report, &verdict, look));
    out.push_str(&cpus(report, look));
    let above = report.wants.is_empty() && verdict.fix.is_empty() && report.crowded();
    if !above {
        out.push_str(&fewest(report, look));
    }
    out.push_str(&pat(report, look));
    out
}

/// How few ranges would do.
fn fewest(report: &Report, look: Look) -> String {
    let advice = report.advice.as_ref();
    advice.map_or(String::new(), |advice| {
        text_plan::advice(report, advice, look)
    })
}

/// The one line that says it all.
fn verdict_line(verdict: &Verdict, look: Look) -> String {
    let word = verdict.state.title();
    let text = wrapped(&format!("{word}: {}", verdict.text), look.columns, "  ");
    let painted = look.severity(verdict.state.severity(), word);
    text.replacen(word, &painted, 1) + "\n"
}

/// What kind of machine this is.
fn head(report: &Report, look: Look) -> String {
    let machine = &report.machine;
    let mut out = String::new();
    let Some(boot) = machine.boot() else {
        return out;
    };
    let mut facts = Vec::new();
    if boot.cap.is_some() {
        facts.push(match (boot.def_type.enabled(), machine.on_known()) {
            (true, true) => "MTRRs on".into(),
            (true, false) => "MTRRs on (assumed)".into(),
            (false, _) => "MTRRs OFF".to_string(),
        });
        facts.push(
            match (machine.fixed_enabled_known(), boot.def_type.fixed_enabled()) {
                (false, true) if machine.fixed_known => "fixed ranges on (assumed)".into(),
                (false, _) => "fixed ranges not known".into(),
                (true, true) => "fixed ranges on".into(),
                (true, false) => "fixed ranges off".into(),
            },
        );
        let default = boot
            .def_type
            .memtype()
            .map_or("reserved".into(), |t| t.to_string());
        let sure = if machine.default_known {
            ""
        } else {
            " (assumed)"
        };
        facts.push(format!("default {default}{sure}"));
    }
    facts.push(format!(
        "{} address bits (from {})",
        machine.bits.get(),
        super::text_plan::bits_source(machine.bits_from)
    ));
    if machine.cpus.len() > 1 {
        facts.push(format!("{} CPUs", machine.cpus.len()));
    }
    if let Some(name) = &machine.dump.hypervisor {
        facts.push(format!("virtual machine: {name}"));
    }
    let _ = writeln!(
        out,
        "{}",
        look.heading(&wrapped(&facts.join(", "), look.columns, ""))
    );
    out
}

/// What was assumed, and what the input lacks.
fn notes(report: &Report, look: Look) -> String {
    let mut out = String::new();
    if !report.machine.notes.is_empty() {
        let _ = writeln!(out, "\n{}", look.heading("Assumed and noted"));
    }
    for note in &report.machine.notes {
        let text = wrapped(&format!("- {note}"), look.columns, "  ");
        let _ = writeln!(out, "{}", look.dim(&text));
    }
    out
}

/// What is wrong, worst first.
fn findings(report: &Report, verdict: &Verdict, look: Look) -> String {
    let mut out = format!("\n{}\n", look.heading("Findings"));
    if report.findings.is_empty() {
        let text = match verdict.state {
            State::Unknown => "none: the input does not show what could be wrong",
            _ => "nothing wrong in what the dump shows",
        };
        let _ = writeln!(out, "  {text}");
    }
    for finding in &report.findings {
        let word = finding.severity.name();
        let text = format!("  {word}: {}", finding.text);
        let text = wrapped(&text, look.columns, "    ");
        let text = text.replacen(word, &look.severity(word, word), 1);
        let _ = writeln!(out, "{text}");
        if !finding.fix.is_empty() {
            let fix = format!("    fix: {}", finding.fix);
            let _ = writeln!(out, "{}", wrapped(&fix, look.columns, "         "));
        }
    }
    out
}

//! The layout for what is wanted, or for RAM that is left out, as a person reads it.

use std::fmt::Write as _;

use super::map;
use super::plan::Advice;
use super::proposal::Way;
use super::repair::Repair;
use super::report::Report;
use super::style::Look;
use super::text_parts::wrapped;
use super::text_plan::{caution, counts, relaxed, steps};

/// Most ranges given up that are listed.
const MOST_LOSSES: usize = 8;

/// The layout that makes RAM write-back.
pub fn repair(report: &Report, repair: &Repair, look: Look) -> String {
    let said = |text: &str| wrapped(text, look.columns, "    ") + "\n";
    let mut out = format!("\n{}\n", look.heading("What to do"));
    let (bytes, source) = (map::bytes(repair.bytes()), repair.source);
    out.push_str(&said(&format!(
        "  make {bytes} of RAM write-back (known from {source})"
    )));
    let need = report.wanted.as_ref().and_then(|advice| advice.here.best());
    out.push_str(&proposed(report, need, look));
    if repair.trimmed {
        out.push_str(&said(
            "  the kernel left that RAM out at boot: boot it with disable_mtrr_trim to have it, \
             and run the lines at every start; a firmware update is the lasting cure",
        ));
    } else {
        out.push_str(&said(
            "  it lasts until the next boot; a firmware update is the lasting cure",
        ));
    }
    out
}

/// What `--want` costs.
pub fn wanted(report: &Report, advice: &Advice, look: Look) -> String {
    let title = match report.repair {
        Some(_) => "With what you want, and RAM that is left out made write-back",
        None => "With what you want",
    };
    let mut out = format!("\n{}\n", look.heading(title));
    if let Some(why) = &advice.failed {
        let _ = writeln!(out, "  not planned: {why}");
        return out;
    }
    let _ = writeln!(out, "  exactly: {}", counts(advice.here));
    out.push_str(&relaxed(advice, look));
    out.push_str(&proposed(report, advice.here.best(), look));
    out
}

/// The layout proposed, with what it takes and gives up. `need` is how many registers the exact
/// one takes at least.
fn proposed(report: &Report, need: Option<usize>, look: Look) -> String {
    let said = |text: &str| wrapped(text, look.columns, "    ") + "\n";
    let proposal = match &report.proposal {
        Some(Ok(proposal)) => proposal,
        Some(Err(why)) => return said(&format!("  not planned: {why}")),
        None => return String::new(),
    };
    let (total, used) = (report.total(), report.used());
    let count = proposal.plan.registers().len();
    let fits = need.is_some_and(|need| need <= total);
    let need = need.map_or("more than 40".to_string(), |need| need.to_string());
    let mut out = match report.machine.is_listed() {
        true => caution(report, look),
        false => String::new(),
    };
    for text in &proposal.fixed {
        out.push_str(&said(&format!(
            "  below 1 MiB the fixed ranges decide: {text}"
        )));
    }
    if !proposal.fixed.is_empty() {
        out.push_str("  (/proc/mtrr does not reach them: that is for firmware or the kernel)\n");
    }
    match &proposal.way {
        Way::Added(0) => {
            out.push_str("  the variable ranges stay as they are\n");
            return out;
        }
        Way::Added(more) => {
            let _ = writeln!(
                out,
                "  it fits: {need} of {total} registers{}",
                cost(report, &need)
            );
            let _ = writeln!(out, "  simplest: add {more} to the {used} there");
        }
        Way::Exact if report.machine.is_listed() && !report.machine.count_known => {
            let _ = writeln!(
                out,
                "  {count} registers are needed; how many exist is not in the input"
            );
        }
        Way::Exact => {
            let least = count.to_string();
            let _ = writeln!(
                out,
                "  it fits: {least} of {total} registers{}",
                cost(report, &least)
            );
        }
        Way::Relaxed { from, why } => {
            let exactly = match fits {
                true => format!(
                    "exactly it takes another default type ({need} of {total} registers), which \
                     /proc/mtrr cannot set"
                ),
                false => format!("exactly it does not fit ({need} needed, {total} exist)"),
            };
            out.push_str(&said(&format!(
                "  {exactly}, but nothing is lost if nothing above {from:#x} matters ({why}): \
                 {count} of {total} registers",
            )));
        }
        Way::Damaged(_) => {
            let _ = writeln!(out, "  it does not fit: {need} needed, {total} exist");
            out.push_str("  the best that fits:\n");
        }
    }
    out.push_str(&steps(proposal, look));
    if let Way::Damaged(losses) = &proposal.way {
        for loss in losses.iter().take(MOST_LOSSES) {
            let _ = writeln!(out, "  given up: {loss}");
        }
        if let Some(more) = losses
            .len()
            .checked_sub(MOST_LOSSES)
            .filter(|more| *more > 0)
        {
            let _ = writeln!(out, "  given up: {more} ranges more");
        }
    }
    out
}

/// ` (1 more than the same map without)`
fn cost(report: &Report, need: &str) -> String {
    let now = report.advice.as_ref().and_then(|now| now.here.best());
    let (Some(now), Ok(need)) = (now, need.parse::<usize>()) else {
        return String::new();
    };
    let more = need.saturating_sub(now);
    match report.repair {
        Some(_) => String::new(),
        None => format!(" ({more} more than the same map without)"),
    }
}

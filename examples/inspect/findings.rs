//! What is wrong, worst first: the library's findings, and what the input itself tells.

use super::causes;
use super::changes::{self, Change};
use super::gaps::Whole;
use super::kernel_says;
use super::lacks::spans;
use super::machine::Machine;
use super::register_findings;
use super::subject::Subject;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something works badly or not at all.
    Error,
    /// Something may.
    Warning,
    /// Good to know.
    Info,
}

impl Severity {
    /// The word in `--json` and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// A word for programs.
    pub kind: String,
    /// First and last byte it is about.
    pub range: Option<(u64, u64)>,
    /// Bytes it is about.
    pub bytes: u64,
    /// What is wrong, in a sentence.
    pub text: String,
    /// What to do, or empty.
    pub fix: String,
}

/// All findings, worst and largest first.
pub fn all(machine: &Machine, changes: &[Change]) -> Vec<Finding> {
    let mut findings = register_findings::all(machine);
    findings.extend(of_input(machine));
    findings.extend(incomplete(machine));
    findings.extend(changes.iter().map(changed));
    join_lost_ram(machine, &mut findings);
    findings.sort_by_key(|finding| {
        // What a line says goes before a line that could not be read to its end.
        let broken = finding.kind == "unreadable-line";
        (finding.severity, broken, std::cmp::Reverse(finding.bytes))
    });
    if machine.boot().is_some_and(|boot| boot.cap.is_none()) {
        // What the input does say is the answer; what it lacks comes last.
        findings.sort_by_key(|finding| finding.kind == "incomplete");
    }
    findings
}

/// RAM that is uncachable, and the kernel's word that it leaves RAM out, are one thing.
fn join_lost_ram(machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(lost) = machine.lost_bytes() else {
        return;
    };
    let hints = &machine.dump.hints;
    let said = hints.iter().find(|hint| hint.subject == Subject::Trimmed);
    let ram = findings
        .iter_mut()
        .find(|finding| finding.kind == "ram-not-write-back" || finding.kind == "ram-given-up");
    if let (Some(said), Some(ram)) = (said, ram) {
        ram.text = causes::with_kernels_word(&ram.text, lost, said.line);
        let start = format!("line {}, the kernel says", said.line);
        findings.retain(|finding| !finding.text.starts_with(&start));
    }
}

/// What the input lacks, unless it is no more than lines that could not be read.
fn incomplete(machine: &Machine) -> Option<Finding> {
    if machine.boot().is_some_and(|boot| boot.cap.is_none()) {
        return Some(no_register(machine));
    }
    if machine.is_listed() {
        return list_cut(machine);
    }
    let gaps = &machine.gaps;
    let broken = &machine.dump.listing.broken;
    let only_broken = !gaps.none_shown
        && gaps.breaks_off.is_none()
        && !gaps.top_mem2
        && gaps.missing.iter().all(|index| broken.contains(index));
    let what = gaps.lacks(&machine.dump);
    (gaps.whole == Whole::No || gaps.top_mem2).then_some(())?;
    (!only_broken && !what.is_empty()).then(|| Finding {
        severity: Severity::Warning,
        kind: "incomplete".into(),
        range: None,
        bytes: 0,
        text: what.join("; "),
        fix: machine.ask_for().into(),
    })
}

/// Entries of the kernel's map that are missing.
fn list_cut(machine: &Machine) -> Option<Finding> {
    let missing = machine.dump.kernel_map.missing();
    (!missing.is_empty()).then(|| Finding {
        severity: Severity::Warning,
        kind: "incomplete".into(),
        range: None,
        bytes: 0,
        text: format!(
            "entries of the kernel's map are not in the input: {}",
            spans(&missing)
        ),
        fix: machine.ask_for().into(),
    })
}

/// The input holds states that differ. What /proc/mtrr adds to a log, drivers may have asked for.
fn changed(change: &Change) -> Finding {
    const MOST: usize = 4;
    let lines = changes::lines(change);
    let mut text = lines
        .get(..lines.len().min(MOST))
        .unwrap_or_default()
        .join("; ");
    if lines.len() > MOST {
        text.push_str(&format!("; and {} more", lines.len() - MOST));
    }
    Finding {
        severity: match change.from {
            Some(_) => Severity::Warning,
            None => Severity::Info,
        },
        kind: "changed".into(),
        range: change
            .memory
            .first()
            .map(|memory| (memory.start, memory.end - 1)),
        bytes: change
            .memory
            .iter()
            .map(|memory| memory.end - memory.start)
            .sum(),
        text: match change.from {
            Some(_) => format!("the input holds two states, or two machines, that differ: {text}"),
            None => format!("/proc/mtrr differs from the log: {text}"),
        },
        fix: String::new(),
    }
}

/// The input has something to say, but shows no register.
fn no_register(machine: &Machine) -> Finding {
    let dump = &machine.dump;
    let linux = dump
        .hints
        .iter()
        .any(|hint| hint.subject == Subject::MapCount);
    Finding {
        severity: match kernel_says::wants_registers(dump) {
            true => Severity::Warning,
            false => Severity::Info,
        },
        kind: "incomplete".into(),
        range: None,
        bytes: 0,
        text: "no MTRR in the input, so the map is not known".into(),
        fix: match linux || dump.new_linux {
            true => "boot with `mtrr=debug` and give the log again, or paste /proc/mtrr",
            false => dump.system.ask_for(),
        }
        .into(),
    }
}

/// Lines that could not be read, and what the kernel that wrote the log said.
fn of_input(machine: &Machine) -> Vec<Finding> {
    let dump = &machine.dump;
    let mut findings: Vec<Finding> = dump
        .complaints
        .iter()
        .map(|(line, why)| Finding {
            severity: Severity::Warning,
            kind: "unreadable-line".into(),
            range: None,
            bytes: 0,
            text: format!("line {line} of the input: {why}; the result is partial"),
            fix: "give the whole dump".into(),
        })
        .collect();
    if dump.more_complaints > 0 {
        findings.push(Finding {
            severity: Severity::Warning,
            kind: "unreadable-line".into(),
            range: None,
            bytes: 0,
            text: format!("{} more lines could not be read", dump.more_complaints),
            fix: String::new(),
        });
    }
    findings.extend(kernel_says::findings(machine));
    findings.extend(super::page_findings::all(&dump.page_types));
    findings
}

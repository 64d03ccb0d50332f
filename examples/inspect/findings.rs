//! What is wrong, worst first: the library's findings, and what the input itself tells.

use super::differs::{self, Standing};
use super::machine::Machine;

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
    /// What is wrong, in a sentence.
    pub text: String,
    /// What to do, or empty.
    pub fix: String,
}

/// All findings, worst first.
pub fn all(machine: &Machine, standings: &[Standing]) -> Vec<Finding> {
    let mut findings = of_input(machine);
    findings.extend(of_cpus(machine, standings));
    findings.sort_by_key(|finding| (finding.severity, finding.range));
    findings
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
            text: format!("line {line} of the input: {why}; the result is partial"),
            fix: "give the whole dump".into(),
        })
        .collect();
    if dump.more_complaints > 0 {
        findings.push(Finding {
            severity: Severity::Warning,
            kind: "unreadable-line".into(),
            range: None,
            text: format!("{} more lines could not be read", dump.more_complaints),
            fix: String::new(),
        });
    }
    findings.extend(dump.hints.iter().map(|(line, text)| Finding {
        severity: Severity::Info,
        kind: "kernel-message".into(),
        range: None,
        text: format!("line {line}, the kernel says: {text}"),
        fix: String::new(),
    }));
    findings
}

/// CPUs that differ.
fn of_cpus(machine: &Machine, standings: &[Standing]) -> Vec<Finding> {
    differs::lines(machine, standings)
        .into_iter()
        .map(|text| Finding {
            severity: Severity::Error,
            kind: "cpus-differ".into(),
            range: None,
            text,
            fix: "give every CPU the first one's registers, with caches off while they change".into(),
        })
        .collect()
}

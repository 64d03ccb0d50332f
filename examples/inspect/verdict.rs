//! The verdict: what is wrong, or what is not known, in one line.

use super::findings::{Finding, Severity};
use super::machine::Machine;
use super::map;
use super::report::Report;
use super::subject::Subject;

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Something is wrong.
    Wrong,
    /// Something is odd or wasteful; the machine works.
    Odd,
    /// Nothing wrong in what the dump shows.
    Fine,
    /// The dump shows too little to tell.
    Unknown,
}

impl State {
    /// The word in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Odd => "odd",
            Self::Fine => "fine",
            Self::Unknown => "unknown",
        }
    }

    /// The word a line starts with.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wrong => "WRONG",
            Self::Odd => "Odd",
            Self::Fine => "Fine",
            Self::Unknown => "Not known",
        }
    }

    /// The severity it is coloured like.
    pub fn severity(self) -> &'static str {
        match self {
            Self::Wrong => "error",
            Self::Odd | Self::Unknown => "warning",
            Self::Fine => "info",
        }
    }
}

/// The verdict on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How things stand.
    pub state: State,
    /// Why.
    pub text: String,
    /// What to do about it, or empty.
    pub fix: String,
}

/// The verdict on what `report` found.
pub fn of(report: &Report) -> Verdict {
    let is_lack = |finding: &&Finding| finding.kind == "incomplete";
    let lack = report.findings.iter().find(is_lack);
    let mut serious = report
        .findings
        .iter()
        .filter(|finding| finding.severity < Severity::Info && !is_lack(finding));
    let (worst, others) = (serious.next(), serious.count());
    match (worst, lack) {
        (Some(worst), _) => {
            // Of mapped ranges alone, no register is missed.
            let lack = lack.filter(|lack| lack.severity < Severity::Info);
            found(report, worst, others, lack)
        }
        (None, Some(lack)) => unknown(report, lack),
        (None, None) if !report.machine.map_known() => Verdict {
            state: State::Unknown,
            text: "the dump shows no variable range: what memory has which type cannot be told"
                .into(),
            fix: report.machine.ask_for().into(),
        },
        (None, None) => fine(report),
    }
}

/// Something is wrong or odd.
fn found(report: &Report, worst: &Finding, others: usize, lack: Option<&Finding>) -> Verdict {
    let mut text = brief(report, worst);
    match others {
        0 => {}
        1 => text += " (and one more finding)",
        more => text += &format!(" (and {more} more findings)"),
    }
    if let Some(lack) = lack {
        text += &format!("; {}", brief(report, lack));
    }
    Verdict {
        state: match worst.severity {
            Severity::Error => State::Wrong,
            _ if !report.machine.map_whole() => State::Unknown,
            _ => State::Odd,
        },
        text,
        fix: match lack {
            Some(lack) => format!("{}; {}", worst.fix, lack.fix),
            None => worst.fix.clone(),
        },
    }
}

/// Too little is known; the kernel may have had something to say.
fn unknown(report: &Report, lack: &Finding) -> Verdict {
    // Without any register, what the log itself says is the answer.
    let no_register = report.machine.boot().is_some_and(|boot| boot.cap.is_none());
    let told = |finding: &&Finding| {
        finding.kind != "incomplete"
            && (no_register || finding.kind == "kernel-message" && !finding.fix.is_empty())
    };
    let mut words = report.findings.iter().filter(told);
    let mut text = brief(report, lack);
    if let Some(word) = words.next() {
        text += &format!("; {}", brief(report, word));
    }
    Verdict {
        state: State::Unknown,
        text,
        fix: lack.fix.clone(),
    }
}

fn fine(report: &Report) -> Verdict {
    let lacking = lacking(&report.machine);
    let mut text = crowded(report).unwrap_or("nothing wrong in what the dump shows".into());
    if !lacking.is_empty() {
        text += &format!("; it does not show {}", lacking.join(", "));
    }
    Verdict {
        state: State::Fine,
        text,
        fix: String::new(),
    }
}

/// The first sentence of a finding, without the line that a kernel's message quotes.
fn brief(report: &Report, finding: &Finding) -> String {
    let mut text = finding.text.as_str();
    let hints = &report.machine.dump.hints;
    for hint in hints.iter().filter(|_| finding.kind == "kernel-message") {
        let quote = format!("line {}, the kernel says: {}", hint.line, hint.text);
        if let Some(rest) = text.strip_prefix(&quote) {
            text = rest.split_once(": ").map_or(rest, |(_, meaning)| meaning);
            let lost = report.machine.lost_bytes();
            if let (Subject::Trimmed, Some(lost)) = (hint.subject, lost) {
                let (lost, why) = (map::bytes(lost), first_sentence(text));
                return format!("{lost} of RAM left out: {why}");
            }
            break;
        }
    }
    if finding.kind != "kernel-message" && finding.kind != "incomplete" {
        return text.into();
    }
    first_sentence(text).into()
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// That no range is free, though fewer would do.
fn crowded(report: &Report) -> Option<String> {
    let total = report.total();
    let free = report.freeable()?;
    let when = match free.from {
        Some(from) => format!(" if nothing above {from:#x} matters"),
        None => String::new(),
    };
    let left = total - free.count;
    (report.used() == total).then(|| {
        format!(
            "nothing wrong, but all {total} variable ranges are in use: {left} are enough{when}"
        )
    })
}

/// What the dump does not say, and what has to be known before all is said to be right.
fn lacking(machine: &Machine) -> Vec<&'static str> {
    let mut parts = Vec::new();
    if !machine.default_known {
        parts.push("the default type");
    }
    if !machine.fixed_known {
        parts.push("the fixed ranges");
    }
    parts.extend(machine.ram_lacks());
    parts
}

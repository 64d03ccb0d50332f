//! The verdict: what is wrong, or what is not known, in one line.

use super::findings::Severity;
use super::machine::Machine;
use super::report::Report;

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
}

/// The verdict on what `report` found.
pub fn of(report: &Report) -> Verdict {
    let machine = &report.machine;
    let serious = report
        .findings
        .iter()
        .filter(|finding| finding.severity < Severity::Info);
    let (worst, others) = (serious.clone().next(), serious.count().saturating_sub(1));
    let lacking = lacking(machine);
    let Some(worst) = worst else {
        if !machine.map_known() {
            return Verdict {
                state: State::Unknown,
                text: "the dump shows no variable range: what memory has which type cannot be told"
                    .into(),
            };
        }
        let mut text = "nothing wrong in what the dump shows".to_string();
        if let Some(crowded) = crowded(report) {
            text = crowded;
        }
        if !lacking.is_empty() {
            text += &format!("; it does not show {}", lacking.join(", "));
        }
        return Verdict {
            state: State::Fine,
            text,
        };
    };
    let incomplete = report
        .findings
        .iter()
        .find(|finding| finding.kind == "incomplete");
    let worst = match incomplete {
        Some(lack) if worst.severity > Severity::Error => lack,
        _ => worst,
    };
    let mut text = worst.text.clone();
    let mut others = others;
    let mut state = match worst.severity {
        Severity::Error => State::Wrong,
        _ if incomplete.is_some() || machine.gaps.variable() => State::Unknown,
        _ => State::Odd,
    };
    let no_register = machine.boot().is_some_and(|boot| boot.cap.is_none());
    let answer = report.findings.iter().find(|f| f.kind != "incomplete");
    if let (true, "incomplete", Some(answer)) = (no_register, worst.kind.as_str(), answer) {
        // Without a register, what the log itself says is the answer.
        if answer.severity < Severity::Info {
            state = State::Odd;
            text = format!("{}; {text}", answer.text);
            others = others.saturating_sub(1);
        } else {
            text += &format!("; {}", answer.text);
        }
    }
    match others {
        0 => {}
        1 => text += " (and one more finding)",
        more => text += &format!(" (and {more} more findings)"),
    }
    if !machine.map_known() && !text.contains("the map is not known") {
        text += "; the map is not known";
    }
    Verdict { state, text }
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
    let parts = [
        (machine.default_known, "the default type"),
        (machine.fixed_known, "the fixed ranges"),
        (machine.ram_told(), "where RAM is"),
    ];
    parts
        .into_iter()
        .filter(|(known, _)| !known)
        .map(|(_, what)| what)
        .collect()
}

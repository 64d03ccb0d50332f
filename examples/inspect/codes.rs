//! What a telephone reads off the QR codes of this crate's kernel example, one code or many, in any
//! order: `MTRR-PAT 1/2 WAKE CPU 0,2-5 BITS 40 INTEL FE: 508 .. END`.

use std::collections::BTreeMap;

use super::dump::{Dump, MAX_CPUS, Vendor};
use super::read_msr::{is_ours, store_in};
use super::regs::Regs;
use super::states::State;

const HEAD: &str = "MTRR-PAT ";

/// When a state was, earliest first.
const LABELS: [&str; 3] = ["BOOT", "SET", "WAKE"];

/// Most codes kept of one input.
const MOST: usize = 4096;

/// One code.
#[derive(Clone, Debug)]
struct Code {
    line: u64,
    part: u32,
    parts: u32,
    /// Of [`LABELS`].
    label: usize,
    cpus: Vec<u32>,
    values: Vec<(u32, u64)>,
}

/// The codes of one input.
#[derive(Clone, Debug, Default)]
pub struct Codes(Vec<Code>);

/// Cuts a line before each code: a telephone may put one behind the other.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices(HEAD).map(|(at, _)| at);
    let starts: Vec<usize> = starts.skip(1).chain([text.len()]).collect();
    let mut from = 0;
    starts.into_iter().filter_map(move |at| {
        let piece = text.get(from..at);
        from = at;
        piece
    })
}

/// Reads one line, when it is a code.
pub fn line(dump: &mut Dump, number: u64, text: &str) -> bool {
    let Some((_, rest)) = text.split_once(HEAD) else {
        return false;
    };
    let mut words = rest.split_ascii_whitespace().peekable();
    let Some(mut code) = head(number, &mut words) else {
        return false;
    };
    while let Some(word) = words.next_if(|word| !word.ends_with(':')) {
        match word {
            "INTEL" => dump.vendor = Vendor::Intel,
            "AMD" => dump.vendor = Vendor::Amd,
            "VM" => dump.hypervisor = Some("VM".into()),
            "BITS" => {
                if let Some(bits) = words.next().and_then(|bits| bits.parse().ok()) {
                    dump.stated_bits = Some((bits, format!("BITS {bits}")));
                }
            }
            _ => break,
        }
    }
    if !values(&mut code, words) {
        let why = format!(
            "code {} of {} is cut short: read up to there",
            code.part, code.parts
        );
        dump.complain(number, why);
        // What was cut may have been in the middle of a number.
        code.values.pop();
    }
    if dump.codes.0.len() < MOST {
        dump.codes.0.push(code);
    }
    true
}

/// `1/2 WAKE CPU 0,2-5`.
fn head<'a>(line: u64, words: &mut impl Iterator<Item = &'a str>) -> Option<Code> {
    let (part, parts) = words.next()?.split_once('/')?;
    let label = words.next()?;
    let label = LABELS.iter().position(|known| *known == label)?;
    let cpus = (words.next()? == "CPU").then(|| words.next())??;
    Some(Code {
        line,
        part: part.parse().ok()?,
        parts: parts.parse().ok()?,
        label,
        cpus: numbers(cpus),
        values: Vec::new(),
    })
}

/// `0,2-5`, and how many more there are behind a `+`, which nobody knows the numbers of.
fn numbers(list: &str) -> Vec<u32> {
    let list = list.split('+').next().unwrap_or("");
    let runs = list.split(',').filter_map(|run| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    runs.flatten().take(MAX_CPUS).collect()
}

/// `200: 80000000 FF80000800 0*14 .. END`: false when it does not come to its end.
fn values<'a>(code: &mut Code, words: impl Iterator<Item = &'a str>) -> bool {
    let mut next = None;
    for word in words {
        if word.starts_with("END") {
            return true;
        }
        if let Some(register) = word.strip_suffix(':') {
            next = u32::from_str_radix(register, 16).ok();
            continue;
        }
        let (value, times) = word.split_once('*').unwrap_or((word, "1"));
        let (Some(first), Ok(value), Ok(times)) = (
            next,
            u64::from_str_radix(value, 16),
            times.parse::<u8>().map(u32::from),
        ) else {
            return false;
        };
        let after = first.saturating_add(times);
        let ours = (first..after).filter(|register| is_ours(*register));
        code.values.extend(ours.map(|register| (register, value)));
        next = Some(after);
    }
    false
}

/// Once everything was read: the codes of one time are one state of the machine, and the last is
/// what the report is about.
pub fn settle(dump: &mut Dump) {
    let codes = std::mem::take(&mut dump.codes).0;
    let mut states: BTreeMap<usize, BTreeMap<u32, Regs>> = BTreeMap::new();
    for code in &codes {
        missing(dump, &codes, code);
        let state = states.entry(code.label).or_default();
        for cpu in code.cpus.iter().take(MAX_CPUS) {
            let regs = state.entry(*cpu).or_default();
            for (register, value) in &code.values {
                store_in(regs, *register, *value);
            }
        }
    }
    let Some((_, last)) = states.pop_last() else {
        return;
    };
    // Registers that came otherwise are another state; a summary of CPUs, which the kernel prints
    // too, is none.
    let others = std::mem::replace(&mut dump.cpus, last);
    if !others.is_empty() && !dump.summary {
        let cpus = others;
        dump.earlier.push(State {
            from: 1,
            cpus,
            ..State::default()
        });
    }
    dump.summary = false;
    let line_of = |label| codes.iter().find(|code| code.label == label);
    for (label, cpus) in states {
        dump.earlier.push(State {
            from: line_of(label).map_or(0, |code| code.line),
            cpus,
            ..State::default()
        });
    }
}

/// Complains, once for each set, of parts that were not pasted.
fn missing(dump: &mut Dump, codes: &[Code], code: &Code) {
    let same = |other: &&Code| {
        (other.label, &other.cpus, other.parts) == (code.label, &code.cpus, code.parts)
    };
    let first = codes
        .iter()
        .find(same)
        .is_some_and(|first| std::ptr::eq(first, code));
    if !first {
        return;
    }
    let has = |part: &u32| codes.iter().filter(same).any(|other| other.part == *part);
    let gone: Vec<String> = (1..=code.parts.min(99))
        .filter(|part| !has(part))
        .map(|part| part.to_string())
        .collect();
    if !gone.is_empty() {
        let label = LABELS.get(code.label).unwrap_or(&"");
        let why = format!(
            "of {} codes with {label}, CPU {}, not here: {}",
            code.parts,
            code.cpus.first().unwrap_or(&0),
            gone.join(", ")
        );
        dump.complain(code.line, why);
    }
}

//! Inputs that hold more than one state of the registers: two boots, before and after sleep, a diff.
//! Every state is read by itself; what comes last is what the rest of the report is about.

use std::collections::BTreeMap;

use super::codes;
use super::dump::{Dump, Listing};
use super::kernel_map::KernelMap;
use super::read::Reader;
use super::regs::Regs;

/// Most bytes of lines kept for a second reading; longer inputs are read once, as one state.
const MOST: usize = 16 << 20;
/// Most states kept.
const MOST_STATES: usize = 16;

/// A state of the registers that another one in the input followed.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its first line.
    pub from: u64,
    /// The registers.
    pub cpus: BTreeMap<u32, Regs>,
    /// Its list of variable ranges.
    pub listing: Listing,
    /// Its map of types.
    pub kernel_map: KernelMap,
}

/// One line of an input, out of what it was wrapped in.
#[derive(Clone, Debug)]
struct KeptLine {
    /// The line of the input it was in.
    number: u64,
    /// How many there were up to it.
    record: u64,
    text: String,
    cut: bool,
}

/// The lines, for a second reading.
#[derive(Debug, Default)]
pub struct Kept {
    lines: Vec<KeptLine>,
    bytes: usize,
}

impl Kept {
    /// Keeps a line; `cut` when it was longer than what is kept of it.
    pub fn push(&mut self, number: u64, record: u64, text: &str, cut: bool) {
        self.bytes += text.len() + 64;
        if self.bytes <= MOST {
            let text = text.to_string();
            self.lines.push(KeptLine {
                number,
                record,
                text,
                cut,
            });
        } else {
            self.lines = Vec::new();
        }
    }
}

/// What the input says, once `reader` has taken all of it.
pub fn settle(mut reader: Reader) -> Dump {
    let kept = std::mem::take(&mut reader.kept);
    if kept.bytes > MOST {
        let mut dump = reader.finish();
        codes::settle(&mut dump);
        return dump;
    }
    let mut lines = kept.lines;
    let total = reader.dump.lines;
    let mut notes = Vec::new();
    if reader.marks.backwards() {
        lines.reverse();
        for (record, line) in (1..).zip(&mut lines) {
            line.record = record;
        }
        reader = again(&lines);
        notes.push(
            "the lines are in reverse order (as `journalctl -r` prints them): read from the last \
             one"
            .to_string(),
        );
    }
    let mut dump = match halves(&lines) {
        Some((before, after)) => {
            let mut dump = again(&after).finish();
            dump.earlier.push(state(&before));
            dump
        }
        None => {
            let starts = std::mem::take(&mut reader.marks.starts);
            let parts = split(&lines, &starts);
            let mut dump = reader.finish();
            if let Some((_, earlier)) = parts.split_last() {
                let states = earlier.iter().take(MOST_STATES);
                dump.earlier = states.map(|part| state(part)).collect();
            }
            dump
        }
    };
    codes::settle(&mut dump);
    dump.lines = total;
    dump.notes.append(&mut notes);
    dump
}

/// Reads `lines` by themselves.
fn again(lines: &[KeptLine]) -> Reader {
    let mut reader = Reader::default();
    for line in lines {
        reader.once_more(line.number, &line.text, line.cut);
    }
    reader
}

/// The registers that `lines` give by themselves.
fn state(lines: &[KeptLine]) -> State {
    let dump = again(lines).finish();
    State {
        from: lines.first().map_or(0, |line| line.number),
        cpus: dump.cpus,
        listing: dump.listing,
        kernel_map: dump.kernel_map,
    }
}

/// `lines` cut before each of `starts`; one part when there is none.
fn split<'a>(lines: &'a [KeptLine], starts: &[u64]) -> Vec<&'a [KeptLine]> {
    let mut parts = Vec::new();
    let mut rest = lines;
    for start in starts {
        let at = rest.iter().position(|line| line.record == *start);
        if let Some(at) = at.filter(|at| *at > 0) {
            let (part, tail) = rest.split_at(at);
            parts.push(part);
            rest = tail;
        }
    }
    parts.push(rest);
    parts
}

/// Both sides of a unified diff, when `lines` are one: registers with "-" and with "+" before them.
fn halves(lines: &[KeptLine]) -> Option<(Vec<KeptLine>, Vec<KeptLine>)> {
    let sign = |text: &str| {
        let first = text.chars().next().filter(|c| "+-".contains(*c))?;
        let rest = text.get(1..)?;
        let header = rest.starts_with("--") || rest.starts_with("++");
        (!header).then_some(first)
    };
    let gives = |text: &str| {
        let mut reader = Reader::default();
        reader.once_more(1, text.get(1..).unwrap_or_default(), false);
        reader.marks.any()
    };
    let has = |wanted: char| {
        let mut of = lines.iter().filter(|line| sign(&line.text) == Some(wanted));
        of.any(|line| gives(&line.text))
    };
    if !has('-') && !has('+') {
        return None;
    }
    // A list whose lines all begin with "- " is no diff.
    let mut heads = lines.iter();
    let headed = heads.any(|line| line.text.starts_with("@@") || line.text.starts_with("+++ "));
    if !(headed || has('-') && has('+')) {
        return None;
    }
    let side = |without: char| -> Vec<KeptLine> {
        let of = lines
            .iter()
            .filter(|line| sign(&line.text) != Some(without));
        of.map(|line| {
            let from = usize::from(sign(&line.text).is_some());
            let text = line.text.get(from..).unwrap_or_default().to_string();
            KeptLine {
                text,
                ..line.clone()
            }
        })
        .collect()
    };
    Some((side('+'), side('-')))
}

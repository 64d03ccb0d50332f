//! What Linux says of the types pages are mapped with: its list of them, and requests it refused.

use mtrr_pat::memtype::PatType;

use super::findings::{Finding, Severity};
use super::map;

/// Most ranges kept of one list, and most lists.
const MAX_RANGES: usize = 4096;
const MAX_LISTS: usize = 4;
/// Most refused requests kept.
const MAX_REFUSED: usize = 64;
/// Most differences told one by one.
const MOST_TOLD: usize = 10;

/// One range of a list, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapped {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// The type byte.
    pub memtype: u8,
}

/// One request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Who asked, if the line says so.
    pub program: String,
    /// The types that met, in the order of the line.
    pub met: Option<(PatType, PatType)>,
    /// What was asked for.
    pub asked: Option<PatType>,
}

/// All of one input.
#[derive(Clone, Debug, Default)]
pub struct PageTypes {
    /// Lists, in the order of the input.
    pub lists: Vec<Vec<Mapped>>,
    /// Refused requests.
    pub refused: Vec<Refused>,
    /// Requests for another type than write-back of memory the kernel has mapped itself.
    pub of_ram: Vec<Refused>,
    /// A heading was seen: the next range opens a list.
    pub opens: bool,
}

impl PageTypes {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.refused.is_empty() && self.of_ram.is_empty()
    }

    /// Takes one range of a list; lists are in the order of addresses, up or down.
    pub fn add(&mut self, range: Mapped) {
        let turned = self.lists.last().is_some_and(|list| turns(list, range));
        if (self.opens || turned || self.lists.is_empty()) && self.lists.len() < MAX_LISTS {
            self.lists.push(Vec::new());
        }
        self.opens = false;
        if let Some(list) = self.lists.last_mut()
            && list.len() < MAX_RANGES
        {
            list.push(range);
        }
    }

    /// Takes a refused request; two lines may tell of one.
    pub fn refuse(&mut self, new: Refused) {
        let same = |old: &&mut Refused| (old.start, old.end) == (new.start, new.end);
        if let Some(old) = self.refused.iter_mut().find(same) {
            old.met = old.met.or(new.met);
            old.asked = old.asked.or(new.asked);
            if old.program.is_empty() {
                old.program = new.program;
            }
        } else if self.refused.len() < MAX_REFUSED {
            self.refused.push(new);
        }
    }

    /// Takes a request for memory that stays write-back.
    pub fn ram_refused(&mut self, new: Refused) {
        if self.of_ram.len() < MAX_REFUSED && !self.of_ram.contains(&new) {
            self.of_ram.push(new);
        }
    }

    /// What there is to say, differences first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut out = Vec::new();
        if let [.., before, after] = self.lists.as_slice() {
            out.extend(differences(before, after));
        }
        out.extend(self.refused.iter().map(refusal));
        out.extend(ram_refusals(&self.of_ram));
        out.extend(self.lists.last().map(|list| summary(list)));
        out
    }
}

/// Whether `range` leaves the direction in which `list` goes.
fn turns(list: &[Mapped], range: Mapped) -> bool {
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        return false;
    };
    match first.start.cmp(&last.start) {
        std::cmp::Ordering::Less => range.start < last.start,
        std::cmp::Ordering::Greater => range.start > last.start,
        std::cmp::Ordering::Equal => false,
    }
}

/// The name of a PAT type as the kernel writes it.
fn name(memtype: u8) -> &'static str {
    match memtype {
        0 => "uncached",
        1 => "write-combining",
        4 => "write-through",
        5 => "write-protected",
        6 => "write-back",
        7 => "uncached-minus",
        _ => "unknown",
    }
}

/// `0xe0000000-0xefffffff (256 MiB)`
fn span(start: u64, end: u64) -> String {
    format!("{start:#x}-{:#x} ({})", end - 1, map::bytes(end - start))
}

fn finding(severity: Severity, kind: &str, range: (u64, u64), text: String, fix: &str) -> Finding {
    Finding {
        severity,
        kind: kind.into(),
        range: Some((range.0, range.1 - 1)),
        bytes: range.1 - range.0,
        text,
        fix: fix.into(),
    }
}

/// Ranges that have another type in `after`, and those that only one of the lists has.
fn differences(before: &[Mapped], after: &[Mapped]) -> Vec<Finding> {
    let gone = without(before, after);
    let come = without(after, before);
    let mut out = Vec::new();
    let mut changed = Vec::new();
    for old in &gone {
        let same = |new: &&Mapped| (new.start, new.end) == (old.start, old.end);
        if let Some(new) = come.iter().find(same)
            && !changed.contains(old)
        {
            changed.push(*old);
            out.push(change(*old, new.memtype));
        }
    }
    let alone = |list: &[Mapped], other: &[Mapped]| -> Vec<Mapped> {
        let paired = |range: &&Mapped| {
            let mut ranges = other.iter();
            !ranges.any(|other| (other.start, other.end) == (range.start, range.end))
        };
        list.iter().filter(paired).copied().collect()
    };
    for (list, which) in [
        (alone(&gone, &come), "first"),
        (alone(&come, &gone), "second"),
    ] {
        out.extend(list.iter().take(MOST_TOLD).map(|range| only(*range, which)));
        if let (Some(range), true) = (list.first(), list.len() > MOST_TOLD) {
            let text = format!("{} ranges are in the {which} list only", list.len());
            let range = (range.start, range.end);
            out.push(finding(Severity::Info, "mapped-once", range, text, ""));
        }
    }
    out
}

/// The ranges of `list`, sorted, each as often as `other` lacks it.
fn without(list: &[Mapped], other: &[Mapped]) -> Vec<Mapped> {
    let mut other = other.to_vec();
    let mut out: Vec<Mapped> = list
        .iter()
        .filter(|range| match other.iter().position(|own| own == *range) {
            Some(at) => {
                other.swap_remove(at);
                false
            }
            None => true,
        })
        .copied()
        .collect();
    out.sort_unstable();
    out
}

fn change(old: Mapped, new: u8) -> Finding {
    let combining = PatType::WriteCombining.raw();
    let slow = match (old.memtype == combining, new == combining) {
        (true, false) => "the second kernel no longer combines writes there",
        (false, true) => "the first kernel does not combine writes there",
        _ => "",
    };
    let fix = if slow.is_empty() {
        String::new()
    } else {
        format!(
            "{slow}, which makes a frame buffer several times slower: look for what its driver \
             maps it with (write-combining has to be asked for)"
        )
    };
    let text = format!(
        "{} is mapped {} in the first list and {} in the second",
        span(old.start, old.end),
        name(old.memtype),
        name(new)
    );
    let range = (old.start, old.end);
    finding(Severity::Warning, "mapped-differently", range, text, &fix)
}

fn only(range: Mapped, which: &str) -> Finding {
    let text = format!(
        "{} is mapped {} in the {which} list only",
        span(range.start, range.end),
        name(range.memtype)
    );
    finding(
        Severity::Info,
        "mapped-once",
        (range.start, range.end),
        text,
        "",
    )
}

fn refusal(refused: &Refused) -> Finding {
    let who = match refused.program.as_str() {
        "" => "a mapping was refused".to_string(),
        program => format!("{program} was refused a mapping"),
    };
    // The line names two types. The second is there; the first was asked for, or another part of
    // the range has it: where the next line says what was asked for, that decides.
    let holds = refused.met.map(|(a, b)| match refused.asked {
        Some(asked) if asked != a => a,
        _ => b,
    });
    let place = span(refused.start, refused.end);
    let text = match (holds, refused.asked, refused.met) {
        (Some(holds), Some(asked), _) => format!(
            "{who}: {place} is already mapped {} (all of it or a part), and {} was asked for; a \
             range has one type at a time",
            name(holds.raw()),
            name(asked.raw())
        ),
        (Some(holds), None, Some((first, _))) => format!(
            "{who}: {place} is already mapped {} (all of it or a part), and {} was asked for or is \
             there too; a range has one type at a time",
            name(holds.raw()),
            name(first.raw())
        ),
        (None, Some(asked), _) => format!(
            "{who}: {place} is already mapped with another type than {}; a range has one type at \
             a time",
            name(asked.raw())
        ),
        _ => format!("{who}: {place} is already mapped with another type"),
    };
    let want = holds.map_or("the type that is there", |holds| name(holds.raw()));
    let fix = format!(
        "the second mapping has to ask for {want}, or wait until the first is gone; the MTRRs have \
         no part in it"
    );
    let range = (refused.start, refused.end);
    finding(Severity::Warning, "mapping-refused", range, text, &fix)
}

/// One finding for all requests of one type: their addresses are of no interest.
fn ram_refusals(of_ram: &[Refused]) -> Option<Finding> {
    let first = of_ram.first()?;
    let asked = first
        .asked
        .map_or("another type", |asked| name(asked.raw()));
    let more = match of_ram.len() {
        1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    let text = format!(
        "{} asked for {asked} of {}{more}: this is RAM, which the kernel has mapped write-back \
         itself, and write-back is what the program got",
        first.program,
        span(first.start, first.end)
    );
    let fix = "harmless where the device snoops the caches; else the driver has to change the type of \
               its pages before it maps them (set_memory_wc, set_memory_uc); the MTRRs have no part \
               in it";
    let range = (first.start, first.end);
    Some(finding(
        Severity::Warning,
        "mapped-write-back",
        range,
        text,
        fix,
    ))
}

fn summary(list: &[Mapped]) -> Finding {
    let mut parts = Vec::new();
    for memtype in [6, 7, 0, 1, 4, 5] {
        let count = list.iter().filter(|range| range.memtype == memtype).count();
        if count > 0 {
            parts.push(format!("{count} {}", name(memtype)));
        }
    }
    let range = list
        .first()
        .map_or((0, 1), |range| (range.start, range.end));
    let text = format!(
        "the kernel lists {} mapped ranges: {}",
        list.len(),
        parts.join(", ")
    );
    let mut finding = finding(Severity::Info, "mapped", range, text, "");
    finding.range = None;
    finding.bytes = 0;
    finding
}

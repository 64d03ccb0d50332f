//! What there is to say of the types pages are mapped with.

use mtrr_pat::memtype::PatType;

use super::findings::{Finding, Severity};
use super::map;
use super::page_types::{Mapped, PageTypes, Refused};

/// Most differences told one by one.
const MOST_TOLD: usize = 10;

/// What there is to say, differences first.
pub fn all(pages: &PageTypes) -> Vec<Finding> {
    let mut out = Vec::new();
    if let [.., before, after] = pages.lists.as_slice() {
        out.extend(differences(before, after));
    }
    out.extend(pages.refused.iter().map(refusal));
    out.extend(ram_refusals(&pages.of_ram));
    out.extend(pages.lists.last().map(|list| summary(list)));
    out
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

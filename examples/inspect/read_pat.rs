//! Linux on the types of mapped pages: debugfs `pat_memtype_list`, and refused requests.

use mtrr_pat::memtype::PatType;

use super::kernel_lines;
use super::page_types::{Mapped, Refused};
use super::quote::quoted;
use super::read::Reader;
use super::read_kernel;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    if let Some((number, text)) = reader.pat_goes_on.take() {
        let whole = format!("{text} {}", line.text);
        let whole = Line::new(number, &whole);
        if broken(&whole) {
            cut_short(reader, number, &text);
        } else {
            return refused(reader, &whole)
                || reserved(reader, &whole)
                || pfn(reader, &whole)
                || ram(reader, &whole)
                || read_kernel::pat(reader, &whole);
        }
    }
    if broken(line) {
        reader.pat_goes_on = Some((line.number, line.text.into()));
        return true;
    }
    if line.text.contains("PAT memtype list") {
        reader.dump.page_types.opens = true;
        return true;
    }
    listed(reader, line)
        || refused(reader, line)
        || reserved(reader, line)
        || pfn(reader, line)
        || ram(reader, line)
}

/// Whether a mail program broke the line: the types it tells of are not on it.
fn broken(line: &Line<'_>) -> bool {
    let mapped = line.text.contains(" map pfn ") && !line.text.contains("got ");
    let refused = line.text.contains(" conflicting memory types") && !line.text.contains("<->");
    let reserved = ["memtype_reserve", "reserve_memtype"].iter().any(|name| {
        // In a call trace the name has an offset after it.
        let rest = line.after(name).map(str::trim);
        rest.is_some_and(|rest| match rest.strip_prefix("failed") {
            Some(rest) => !rest.contains(", req ") && !rest.trim_start().starts_with('-'),
            None => rest.is_empty(),
        })
    });
    mapped || refused || reserved || few_slots(line)
}

/// Whether a line shows some of the PAT's eight slots and nothing after them.
fn few_slots(line: &Line<'_>) -> bool {
    let key = "PAT: Configuration [0-7]:";
    let Some(rest) = line
        .after(key)
        .or_else(|| line.after("PAT configuration [0-7]:"))
    else {
        return false;
    };
    let mut names = rest.split_whitespace();
    rest.split_whitespace().count() < 8 && names.all(|name| words::pat_type(name).is_some())
}

/// Says so when the input ends with half a line.
pub fn finish(reader: &mut Reader) {
    if let Some((number, text)) = reader.pat_goes_on.take() {
        cut_short(reader, number, &text);
    }
}

/// Takes what half a line says, and says that it is half.
fn cut_short(reader: &mut Reader, number: u64, text: &str) {
    let line = Line::new(number, text);
    if few_slots(&line) {
        read_kernel::pat(reader, &line);
        return;
    }
    reader.dump.complain(number, "cut short: two types wanted");
    if !refused(reader, &line)
        && let Some((at, subject)) = kernel_lines::subject(text)
    {
        let words = kernel_lines::message(text, at);
        reader.dump.hint(number, subject, words);
    }
}

/// `write-back @ 0x55ba4000-0x55ba5000`, and since 5.6
/// `PAT: [mem 0x0000000055ba4000-0x0000000055ba5000] write-back`.
fn listed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let old = line.words.iter().position(|word| *word == "@");
    let (range, name) = if let Some(at) = old {
        let before = at.checked_sub(1).and_then(|before| line.words.get(before));
        (line.words.get(at + 1), before)
    } else if let Some(at) = line.words.iter().position(|word| *word == "PAT:") {
        if line.words.get(at + 1) != Some(&"[mem") {
            return false;
        }
        (line.words.get(at + 2), line.words.get(at + 3))
    } else {
        return false;
    };
    let (Some((start, end)), Some(memtype)) = (
        range.and_then(|range| span(range)),
        name.and_then(|name| memtype(name)),
    ) else {
        return false;
    };
    reader.dump.page_types.add(Mapped {
        start,
        end,
        memtype: memtype.raw(),
    });
    true
}

/// Two numbers with a dash between, as they are.
fn span(text: &str) -> Option<(u64, u64)> {
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let (first, last) = text.split_once('-')?;
    let (first, last) = (words::hex(first)?, words::hex(last)?);
    (first < last).then_some((first, last))
}

/// The type by the kernel's name.
fn memtype(name: &str) -> Option<PatType> {
    let name = name.trim_matches(|c: char| !c.is_ascii_alphabetic());
    Some(match name {
        "uncached" => PatType::Uncachable,
        "uncached-minus" => PatType::UncachedMinus,
        _ => PatType::from_field(words::memtype(name)?).ok()?,
    })
}

/// `x86/PAT: Xorg:812 conflicting memory types e0000000-f0000000 write-combining<->uncached-minus`
fn refused(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((before, after)) = line.text.split_once(" conflicting memory types ") else {
        return false;
    };
    let mut rest = after.split_whitespace();
    let range = rest.next().and_then(span);
    let types = rest.next().and_then(|types| types.split_once("<->"));
    let met = types.and_then(|(a, b)| Some((memtype(a)?, memtype(b)?)));
    // Told again without its range, it is a line of the kernel like others.
    let Some((start, end)) = range else {
        return false;
    };
    reader.dump.page_types.refuse(Refused {
        start,
        end,
        program: program(before),
        met,
        asked: None,
    });
    true
}

/// `memtype_reserve failed [mem 0xe0000000-0xefffffff], track uncached-minus, req uncached-minus`,
/// and before 5.6 `reserve_memtype failed 0xe0000000-0xf0000000, track ..`.
fn reserved(reader: &mut Reader, line: &Line<'_>) -> bool {
    let text = line
        .after("memtype_reserve failed ")
        .or_else(|| line.after("reserve_memtype failed "));
    let Some(text) = text else {
        return false;
    };
    let brackets = text.starts_with("[mem ");
    let range = text.trim_start_matches("[mem ");
    let Some((start, end)) = range.split([',', ' ', ']']).next().and_then(span) else {
        // "ioremap reserve_memtype failed -22"
        return false;
    };
    let asked = text.split("req ").nth(1).and_then(memtype);
    reader.dump.page_types.refuse(Refused {
        start,
        end: end + u64::from(brackets),
        program: String::new(),
        met: None,
        asked,
    });
    true
}

/// `app:2512 map pfn RAM range req uncached-minus for [mem 0x481488000-0x481488fff], got write-back`
fn ram(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((before, after)) = line.text.split_once(" map pfn RAM range req ") else {
        return false;
    };
    let asked = after.split_whitespace().next().and_then(memtype);
    let range = after.split("[mem ").nth(1).unwrap_or("");
    let range = range.split([',', ']']).next().and_then(span);
    let (Some(asked), Some((start, end))) = (asked, range) else {
        return false;
    };
    reader.dump.page_types.ram_refused(Refused {
        start,
        end: end + 1,
        program: program(before),
        met: None,
        asked: Some(asked),
    });
    true
}

/// The program in `[   45.3] x86/PAT: NDK MediaCodec_:3753`.
fn program(before: &str) -> String {
    let name = before.rsplit("PAT: ").next().unwrap_or(before);
    let name = name.rsplit("] ").next().unwrap_or(name);
    let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
    quoted(name.trim(), 40)
}

/// `Xorg:812 map pfn expected mapping type uncached-minus for [mem 0xe0000000-0xefffffff], got
/// write-combining`
fn pfn(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some((before, after)) = line.text.split_once(" map pfn expected mapping type ") else {
        return false;
    };
    let asked = after.split_whitespace().next().and_then(memtype);
    let range = after.split("for ").nth(1).unwrap_or("");
    let brackets = range.starts_with("[mem ");
    let range = range.trim_start_matches("[mem ");
    let range = range.split([',', ']']).next().and_then(span);
    let got = after.split("got ").nth(1).and_then(memtype);
    let (Some(asked), Some((start, end)), Some(got)) = (asked, range, got) else {
        let why = "cut short: a range and two types wanted";
        reader.dump.complain(line.number, why);
        return true;
    };
    reader.dump.page_types.refuse(Refused {
        start,
        end: end + u64::from(brackets),
        program: program(before),
        met: Some((asked, got)),
        asked: Some(asked),
    });
    true
}

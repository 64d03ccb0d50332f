//! What the kernel itself has to say of memory types, also where a mail program broke its lines.

use super::kernel_lines;
use super::read::Reader;
use super::subject::Subject;
use super::system::System;
use super::words::Line;

/// A line of a log, which the next one may go on with.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Its number among those read, and in the input.
    record: u64,
    number: u64,
    text: String,
    subject: Option<Subject>,
}

/// Reads one line, when the kernel says something in it.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    let found = kernel_lines::subject(line.text);
    let before = reader.unfinished.take();
    let before = before.filter(|before| before.record + 1 == reader.dump.records);
    if let Some(before) = before.filter(|_| !stamped(line.text))
        && goes_on(reader, &before, line, found)
    {
        return true;
    }
    if stamped(line.text) {
        reader.unfinished = Some(Unfinished {
            record: reader.dump.records,
            number: line.number,
            text: line.text.into(),
            subject: found.map(|(_, subject)| subject),
        });
    }
    if let Some((at, subject)) = found {
        said(reader, line, at, subject);
    }
    found.is_some()
}

/// Whether the next line, `bytes`, may be the second half of the one before.
pub fn may_go_on(reader: &Reader, bytes: &[u8]) -> bool {
    let before = reader.unfinished.as_ref();
    before.is_some_and(|before| before.record == reader.dump.records)
        && !stamped(&String::from_utf8_lossy(bytes))
}

/// Takes the second half of a line, when both together say what neither does.
fn goes_on(
    reader: &mut Reader,
    before: &Unfinished,
    line: &Line<'_>,
    found: Option<(usize, Subject)>,
) -> bool {
    let text = format!("{} {}", before.text, line.text);
    let whole = Line::new(before.number, &text);
    let comes = |has: fn(&str) -> bool| !has(&before.text) && has(&text);
    let more = match before.subject {
        None => found.is_none(),
        Some(Subject::Trimmed) => comes(|text| told_after(text, "losing ").ends_with("MB")),
        Some(Subject::Refused) => comes(|text| !told_after(text, "new: ").is_empty()),
        Some(_) => false,
    };
    let Some((at, subject)) = kernel_lines::subject(&text).filter(|_| more) else {
        return false;
    };
    reader
        .dump
        .hints
        .retain(|hint| hint.line != before.number || before.subject.is_none());
    said(reader, &whole, at, subject);
    true
}

/// The word after `key`, or nothing.
fn told_after<'a>(text: &'a str, key: &str) -> &'a str {
    let rest = text.split(key).nth(1).unwrap_or("");
    rest.split_whitespace().next().unwrap_or("")
}

/// Whether a line begins as those of kernel logs do: `[    0.069178]`, `kernel:`.
fn stamped(text: &str) -> bool {
    let stamp = |text: &str| {
        let inside = text.split(']').next().unwrap_or("").trim();
        inside.contains('.')
            && inside
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    text.contains("kernel: ") || text.split('[').skip(1).any(stamp)
}

/// Takes what `line` says about `subject`, from `at` on.
fn said(reader: &mut Reader, line: &Line<'_>, at: usize, subject: Subject) {
    if subject == Subject::Found {
        // OpenBSD: "mtrr: Pentium Pro MTRR support, 8 var ranges, 88 fixed ranges".
        let count = line
            .after("MTRR support, ")
            .and_then(|text| text.split(' ').next());
        reader.dump.stated_count = count.and_then(|n| n.parse().ok());
    }
    if subject == Subject::MapCount {
        // With TOP_MEM2 in force Linux counts one more.
        let count = line.after("from ").and_then(|text| text.split(' ').next());
        let count: Option<u8> = count.and_then(|n| n.parse().ok());
        let count = count.map(|n| if n == 9 || n == 11 { n - 1 } else { n });
        reader.dump.stated_count = count.or(reader.dump.stated_count);
    }
    if line.text.contains("all blank - virtualized system") {
        let name = "the kernel says \"virtualized system\"";
        reader.dump.hypervisor.get_or_insert(name.into());
    }
    reader.dump.incorrect_mask |= subject == Subject::IncorrectMask;
    let text = kernel_lines::message(line.text, at);
    if let Some(system) = System::of_words(subject, text) {
        reader.dump.system = system;
    }
    reader.dump.hint(line.number, subject, text);
}

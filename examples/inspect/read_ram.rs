//! The RAM map of kernel logs.

use super::dump::{Counted, Hint, MAX_RAM};
use super::machine::FOUR_GIB;
use super::read::Reader;
use super::subject::Subject;
use super::words::{self, Line};

/// Bytes of a page.
const PAGE: u64 = 0x1000;

/// The RAM map: BIOS-e820 old and new, Xen's, EFI's; `last_pfn` and
/// other counts.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.text.contains("BIOS-provided physical RAM map")
        || line.text.contains("Xen-e820 RAM map")
    {
        reader.dump.ram.clear();
        return true;
    }
    if let Some(text) = line.after("last_pfn = ") {
        let page = text.split_whitespace().next().and_then(words::hex);
        if let Some(end) = page.and_then(|page| page.checked_mul(PAGE)) {
            pages(reader, end);
            return true;
        }
    }
    if let Some(end) = zone(line).or_else(|| high_memory(reader, line)) {
        reader.dump.ram_end = reader.dump.ram_end.max(Some(end));
        return true;
    }
    // Old kernels: with a small k, the second number is where RAM ends; later ones count its pages.
    if let Some(text) = line
        .after("Memory: ")
        .filter(|text| text.contains("k available"))
    {
        let end = text
            .split(['/', ' '])
            .nth(1)
            .and_then(|end| end.strip_suffix('k'));
        let end = end.and_then(|digits| digits.parse::<u64>().ok());
        if let Some(end) = end.and_then(|end| end.checked_mul(1024)) {
            reader.dump.ram_end = reader.dump.ram_end.or(Some(end));
            return true;
        }
    }
    if line.text.contains("update [mem") && line.text.contains("usable ==> reserved") {
        let text = line.text.split("usable").next().unwrap_or("");
        if let Some(range) = span(text).filter(|_| reader.dump.given_up.len() < MAX_RAM) {
            reader.dump.given_up.push(range);
        }
        return true;
    }
    let e820 = line.word_from_end(0).trim_matches(['(', ')']) == "usable"
        && !line.text.contains("modified:")
        && !line.text.contains("user:")
        && !line.text.contains("update")
        && !line.text.contains("remove");
    let efi = line.text.contains("Conventional Memory") && line.text.contains("range=");
    if !e820 && !efi {
        return false;
    }
    let text = if efi {
        line.after("range=").unwrap_or("")
    } else {
        line.text
    };
    let Some((first, end)) = span(text) else {
        return false;
    };
    reader.dump.add_ram(first, end);
    true
}

/// Linux counts all pages, reads its registers, and then counts those below 4 GiB if there are more.
fn pages(reader: &mut Reader, end: u64) {
    if reader.registers_came && end <= FOUR_GIB && reader.dump.ram_end.is_none_or(|old| old == end)
    {
        let left_out = |hint: &Hint| hint.subject == Subject::Trimmed;
        let trimmed = reader.dump.hints.iter().any(left_out);
        if reader.dump.counted != Counted::All && !trimmed {
            reader.dump.counted = Counted::Low;
        }
    }
    reader.dump.ram_end = reader.dump.ram_end.max(Some(end));
}

/// Where the highest zone of 32-bit Linux ends: `HighMem    229376 ->   522192`, in hexadecimal
/// since 2.6.28.
fn zone(line: &Line<'_>) -> Option<u64> {
    let rest = line.after("HighMem ")?;
    let (first, end) = rest.split_once("->")?;
    let number = |text: &str| {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let (first, end) = (number(first)?, number(end)?);
    (first < end).then(|| end.checked_mul(PAGE)).flatten()
}

/// `1143MB HIGHMEM available.`, then `896MB LOWMEM available.`: both in whole MiB, so RAM may end
/// up to 2 MiB above.
fn high_memory(reader: &mut Reader, line: &Line<'_>) -> Option<u64> {
    const MIB: u64 = 1 << 20;
    let size = |key: &str| {
        let before = line
            .text
            .split(key)
            .next()
            .filter(|_| line.text.contains(key))?;
        before.split_whitespace().next_back()?.parse::<u64>().ok()
    };
    if let Some(high) = size("MB HIGHMEM available") {
        reader.high_memory = high;
    }
    let low = size("MB LOWMEM available")?;
    let end = low
        .checked_add(reader.high_memory)?
        .checked_add(2)?
        .checked_mul(MIB)?;
    let better = reader.dump.ram_end.is_some() || !reader.dump.ram.is_empty();
    (!better).then_some(end)
}

/// The two addresses of a RAM map line, half-open: an odd end is a last byte.
fn span(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text
        .split(|c: char| !(c.is_ascii_alphanumeric()))
        .filter(|word| word.len() >= 3)
        .filter_map(words::hex)
        .rev();
    let end = numbers.next()?;
    let first = numbers.next().unwrap_or(0);
    let end = if end & 1 == 1 {
        end.checked_add(1)?
    } else {
        end
    };
    (first < end).then_some((first, end))
}

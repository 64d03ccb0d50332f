//! The RAM map of kernel logs.

use super::dump::MAX_RAM;
use super::read::Reader;
use super::words::{self, Line};

/// The RAM map: BIOS-e820 old and new, Xen's, EFI's; `last_pfn`.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.text.contains("BIOS-provided physical RAM map")
        || line.text.contains("Xen-e820 RAM map")
    {
        reader.dump.ram.clear();
        return true;
    }
    if let Some(text) = line.after("last_pfn = ") {
        let page = text.split_whitespace().next().and_then(words::hex);
        if let Some(end) = page.and_then(|page| page.checked_mul(0x1000)) {
            reader.dump.ram_end = reader.dump.ram_end.max(Some(end));
            return true;
        }
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

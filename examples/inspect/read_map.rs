//! What Linux says of its own map since 6.5: how it was built, and with `mtrr=debug` what it is.

use mtrr_pat::memtype::MemType;

use super::kernel_map::Entry;
use super::marks::Listing;
use super::read::{Reader, Section};
use super::subject::Subject;
use super::words::{self, Line};

/// Digits of an address in the list.
const DIGITS: usize = 16;

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    summary(reader, line) || entry(reader, line)
}

/// `MTRR map: 6 entries (3 fixed + 3 variable; max 23), built from 10 variable MTRRs`
fn summary(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(text) = line.after("MTRR map: ") else {
        return false;
    };
    let number = |before: &str, after: &str| {
        let text = text.split(before).nth(1)?;
        text.split(after).next()?.trim().parse::<u32>().ok()
    };
    reader.dump.new_linux = true;
    reader.section = Section::Map;
    reader.saw(Listing::Map, 0, 0);
    reader.registers_come();
    let shown = format!("MTRR map: {text}");
    reader.dump.hint(line.number, Subject::MapCount, &shown);
    let fixed = number("(", " fixed");
    let most = number("max ", ")");
    let all = text.split(' ').next().and_then(|count| count.parse().ok());
    if let (Some(all), Some(fixed)) = (all, fixed.and_then(|count| u16::try_from(count).ok())) {
        reader.dump.kernel_map.counts = Some((all, fixed));
    }
    if let (Some(fixed), Some(most)) = (fixed, most) {
        // Two pieces for every range that exists, and one if AMD's TOP_MEM2 counts.
        reader.dump.stated_count = u8::try_from(most.saturating_sub(fixed) / 2).ok();
        let regs = reader.dump.cpu(0);
        regs.fixed_enabled.get_or_insert(fixed > 0);
        regs.enabled.get_or_insert(true);
    }
    true
}

/// `  3: 0000000000100000-00000000adffffff write-back`
fn entry(reader: &mut Reader, line: &Line<'_>) -> bool {
    let name = words::memtype(line.word_from_end(0));
    let range = line.word_from_end(1).split_once('-');
    let number = line.word_from_end(2).strip_suffix(':');
    let (Some(memtype), Some((first, last)), Some(number)) = (name, range, number) else {
        return false;
    };
    if first.len() != DIGITS || last.len() != DIGITS {
        return false;
    }
    let (Ok(number), Some(start), Some(last)) =
        (number.parse::<u16>(), words::hex(first), words::hex(last))
    else {
        return false;
    };
    reader.saw(Listing::Map, 0, 1 + u32::from(number));
    // A type that does not exist leaves its place open.
    if let (Ok(memtype), Some(end)) = (MemType::from_field(memtype), last.checked_add(1)) {
        let entry = Entry {
            start,
            end,
            memtype,
        };
        reader.dump.kernel_map.add(number, entry);
    }
    true
}

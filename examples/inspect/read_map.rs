//! What Linux says of its own map since 6.5: how it was built, and with `mtrr=debug` what it is.

use super::kernel_lines::Subject;
use super::read::{Reader, Section};
use super::words::{self, Line};

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
    let shown = format!("MTRR map: {text}");
    reader.dump.hint(line.number, Subject::MapCount, &shown);
    let fixed = number("(", " fixed");
    let most = number("max ", ")");
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
    if reader.section != Section::Map {
        return false;
    }
    let name = words::memtype(line.word_from_end(0));
    let range = line.word_from_end(1).split_once('-');
    let number = line.word_from_end(2).strip_suffix(':');
    let number = number.is_some_and(|digits| digits.parse::<u16>().is_ok());
    let whole = range
        .is_some_and(|(first, last)| words::hex(first).is_some() && words::hex(last).is_some());
    // The registers are printed above: they say the same, and more.
    name.is_some() && number && whole
}

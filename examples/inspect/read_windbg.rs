//! The Windows debugger's `!mtrr`.

use super::marks::Listing;
use super::read::{Reader, Section};
use super::regs::Variable;
use super::words::{self, Line};

/// Reads one line, when it is of this format.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    heading(reader, line) || fixed(reader, line) || variable(reader, line)
}

/// `MTRR:  Var 8, Fixed-support enabled, USWC-supported, Default: UC`
fn heading(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(text) = line.after("MTRR:") else {
        return line.words.first() == Some(&"Variable:") && line.words.contains(&"Mask");
    };
    let words: Vec<&str> = text
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    let (Some(count), Some(default)) = (after("Var"), after("Default:")) else {
        return false;
    };
    reader.dump.stated_count = count.parse().ok();
    let again = reader.saw(Listing::Table, 0, 0);
    reader.dump.listing.every = true;
    reader.dump.listing.debugger = true;
    let regs = reader.dump.cpu(0);
    regs.default = words::memtype(default);
    regs.fixed_enabled = after("Fixed-support").map(|word| word == "enabled");
    if again {
        regs.variable.clear();
    }
    reader.section = Section::WinDbg;
    true
}

/// `WB:00000-0ffff  WB:10000-1ffff`
fn fixed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let ranges: Option<Vec<(u8, u64, u64)>> = line.words.iter().map(|word| range(word)).collect();
    let Some(ranges) = ranges.filter(|ranges| !ranges.is_empty()) else {
        return false;
    };
    let lowest = ranges.iter().map(|(_, first, _)| first >> 12).min();
    let rank = 2 + lowest.unwrap_or(0) as u32;
    reader.saw(Listing::Table, 0, rank);
    for (memtype, first, last) in ranges {
        reader.dump.cpu(0).set_fixed_range(first, last, memtype);
    }
    true
}

/// One of them.
fn range(word: &str) -> Option<(u8, u64, u64)> {
    let (name, range) = word.split_once(':')?;
    let (first, last) = range.split_once('-')?;
    if first.len() != 5 || last.len() != 5 {
        return None;
    }
    Some((words::memtype(name)?, words::hex(first)?, words::hex(last)?))
}

/// `  0.   UC: 00000000:c0000000  000003ff:c0000000  00000000:40000000`, `  2.`
fn variable(reader: &mut Reader, line: &Line<'_>) -> bool {
    let number = line.words.first().and_then(|word| word.strip_suffix('.'));
    let Some(index) = number.and_then(|digits| digits.parse::<u8>().ok()) else {
        return false;
    };
    let entry = match line.words.get(1..) {
        Some([]) if reader.section == Section::WinDbg => Variable::Off,
        Some([name, base, mask, ..]) => {
            let memtype = name.strip_suffix(':').and_then(words::memtype);
            let (Some(memtype), Some(base), Some(mask)) = (memtype, halves(base), halves(mask))
            else {
                return false;
            };
            Variable::Words {
                base: Some(base & !0xfff | u64::from(memtype)),
                mask: Some(mask & !0xfff | 1 << 11),
            }
        }
        _ => return false,
    };
    if usize::from(index) >= mtrr_pat::regs::MAX_VARIABLE {
        return false;
    }
    let known = reader.dump.cpu(0).variable.get(&index);
    if entry == Variable::Off && known == Some(&entry) {
        // The line before once more: it is too short to be taken for a repetition.
        return true;
    }
    reader.table_entry(0, index);
    reader.dump.cpu(0).variable.insert(index, entry);
    true
}

/// `000003ff:c0000000`
fn halves(text: &str) -> Option<u64> {
    let (high, low) = text.split_once(':')?;
    if high.len() != 8 || low.len() != 8 {
        return None;
    }
    Some(words::hex(high)? << 32 | words::hex(low)?)
}

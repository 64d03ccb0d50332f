//! The MTRR block of kernel logs (Linux, Xen), and firmware's lists of the same form.

use super::marks::{FIRST_RANGE, Listing};
use super::read::{Reader, Section};
use super::regs::Variable;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    headers(reader, line)
        || fixed(reader, line)
        || base_mask(reader, line)
        || disabled(reader, line)
}

/// "MTRR default type", "MTRR fixed ranges", "MTRR variable ranges".
fn headers(reader: &mut Reader, line: &Line<'_>) -> bool {
    if let Some(name) = line
        .after("MTRR default type:")
        .or_else(|| line.after("MTRR Default Type:"))
    {
        let name = name.trim();
        reader.saw(Listing::Table, 0, 0);
        reader.registers_come();
        let regs = reader.dump.cpu(0);
        match (words::memtype(name), words::hex(name)) {
            (Some(memtype), _) => regs.default = Some(memtype),
            (None, Some(word)) => regs.set_def_type(word),
            (None, None) => reader
                .dump
                .complain(line.number, "cut short: no default type"),
        }
        return true;
    }
    let on = if line.text.contains("enabled") {
        Some(true)
    } else if line.text.contains("disabled") {
        Some(false)
    } else {
        None
    };
    if line.text.contains("MTRR fixed ranges") {
        reader.saw(Listing::Table, 0, 1);
        reader.dump.cpu(0).fixed_enabled = on;
        reader.section = Section::Fixed;
    } else if line.text.contains("MTRR variable ranges") {
        reader.saw(Listing::Table, 0, FIRST_RANGE - 1);
        reader.dump.cpu(0).enabled = on;
        let listing = &mut reader.dump.listing;
        listing.every = true;
        listing.headed |= listing.last_record == 0;
        reader.section = Section::Variable;
    } else {
        return false;
    }
    reader.registers_come();
    if on.is_none() {
        reader
            .dump
            .complain(line.number, "cut short: enabled or disabled?");
    }
    true
}

/// `  A0000-BFFFF uncachable`
fn fixed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let range = |word: &str| {
        let (first, last) = word.split_once('-')?;
        if first.len() != 5 || last.len() != 5 {
            return None;
        }
        Some((words::hex(first)?, words::hex(last)?))
    };
    if let Some((first, last)) = range(line.word_from_end(1)) {
        let Some(memtype) = words::memtype(line.word_from_end(0)) else {
            return false;
        };
        let rank = 2 + (first >> 12) as u32;
        reader.saw(Listing::Table, 0, rank);
        reader.dump.cpu(0).set_fixed_range(first, last, memtype);
        return true;
    }
    let cut = reader.section == Section::Fixed && range(line.word_from_end(0)).is_some();
    if cut {
        reader
            .dump
            .complain(line.number, "cut short: a fixed range without a type");
    }
    cut
}

/// `  0 base 0080000000 mask FF80000000 uncachable`; also coreboot's `type 6`, EDK2's raw words.
fn base_mask(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(at) = line
        .atoms
        .iter()
        .position(|atom| atom.eq_ignore_ascii_case("base"))
    else {
        return false;
    };
    let index = at
        .checked_sub(1)
        .and_then(|before| line.atoms.get(before))
        .and_then(|atom| {
            atom.trim_start_matches(|c: char| !c.is_ascii_digit())
                .parse::<u8>()
                .ok()
        });
    let Some(index) = index else {
        return false;
    };
    let Some(base) = line.atoms.get(at + 1).and_then(|a| words::hex(a)) else {
        // "MTRR: 5 base" at the end of a log.
        let cut = line.atoms.len() == at + 1 && line.text.contains("MTRR");
        if cut {
            reader
                .dump
                .complain(line.number, "cut short: a variable range without a base");
            reader.dump.broken_range(index);
        }
        return cut;
    };
    if usize::from(index) >= mtrr_pat::regs::MAX_VARIABLE || reader.temporary {
        return reader.temporary;
    }
    let table = reader.section == Section::Variable;
    let Some(mask) = line.atom_after("mask").and_then(words::hex) else {
        if table {
            reader
                .dump
                .complain(line.number, "cut short: a variable range without a mask");
            reader.dump.broken_range(index);
        }
        return table;
    };
    let memtype = table_type(line);
    if table && memtype.is_none() {
        reader
            .dump
            .complain(line.number, "cut short: a variable range without a type");
        reader.dump.broken_range(index);
        return true;
    }
    if table {
        reader
            .dump
            .digits
            .see(line.atom_after("mask").unwrap_or(""));
    }
    let cpu = super::read_msr::cpu_of(line).unwrap_or(reader.cpu);
    reader.table_entry(cpu, index);
    let entry = match memtype {
        Some(memtype) => Variable::Words {
            base: Some(base & !0xfff | u64::from(memtype)),
            mask: Some(mask & !0xfff | 1 << 11),
        },
        None => Variable::Words {
            base: Some(base),
            mask: Some(mask),
        },
    };
    reader.dump.cpu(cpu).variable.insert(index, entry);
    true
}

/// The type at the end of a table line, by name or as `type 6`.
fn table_type(line: &Line<'_>) -> Option<u8> {
    let at = line
        .words
        .iter()
        .position(|word| word.to_ascii_lowercase().contains("mask"))?;
    let rest = line.words.get(at + 1..)?;
    rest.iter()
        .find_map(|word| words::memtype(word))
        .or_else(|| line.atom_after("type").and_then(|digit| digit.parse().ok()))
}

/// `  6 disabled`, in a list or, where its heading was cut off, right below the range before.
fn disabled(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.word_from_end(0) != "disabled" {
        return false;
    }
    let Ok(index) = line.word_from_end(1).parse::<u8>() else {
        return false;
    };
    let last = reader
        .dump
        .cpu_if_any(0)
        .and_then(|regs| regs.variable.keys().next_back());
    let below = last.is_some_and(|last| last + 1 == index)
        && reader.dump.listing.last_record + 1 == reader.dump.records;
    if reader.section != Section::Variable && !below {
        return false;
    }
    if usize::from(index) < mtrr_pat::regs::MAX_VARIABLE {
        reader.table_entry(0, index);
        reader.dump.listing.every = true;
        reader.dump.cpu(0).variable.insert(index, Variable::Off);
    }
    true
}

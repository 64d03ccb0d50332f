//! What Linux prints as it tries to re-arrange the variable ranges: the list it found, and the one
//! it made of it.

use mtrr_pat::regs::{MAX_VARIABLE, VariableMtrr};

use super::dump::Listed;
use super::read::Reader;
use super::regs::Variable;
use super::subject::Subject;
use super::words::{self, Line};

/// Reads one line, when it is one of the clean-up's.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.text.contains("original variable MTRRs") {
        reader.rearranged = false;
        reader.dump.listed.clear();
        return true;
    }
    if line.text.contains("New variable MTRRs") {
        reader.rearranged = true;
        let number = line.number;
        reader
            .dump
            .hint(number, Subject::CleanedUp, "New variable MTRRs");
        return true;
    }
    entry(reader, line)
}

/// `reg 0, base: 0GB, range: 2GB, type WB`
fn entry(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.text.contains("variable MTRR") {
        return false;
    }
    let Some(text) = line.after("reg ") else {
        return false;
    };
    let (Some(base), Some(range)) = (line.after("base:"), line.after("range:")) else {
        return false;
    };
    let index = text
        .split([',', ' '])
        .find(|word| !word.is_empty())
        .and_then(|n| n.parse::<u8>().ok());
    let first = |text: &str| words::size(text.trim_start().split([',', ' ']).next().unwrap_or(""));
    let memtype = line
        .after("type ")
        .and_then(|text| text.split_whitespace().next());
    match (
        index,
        first(base),
        first(range),
        memtype.and_then(words::memtype),
    ) {
        (Some(index), Some(base), Some(size), Some(memtype)) => {
            let fits = usize::from(index) < MAX_VARIABLE && base.checked_add(size).is_some();
            if fits && !reader.rearranged && size >= 0x1000 {
                keep(
                    reader,
                    index,
                    Listed {
                        base,
                        size,
                        memtype,
                    },
                );
            }
        }
        // Cut off behind its comma: the table above says the same, and more.
        _ => reader.list_cut = Some(line.number),
    }
    true
}

/// Takes one range of the list it found; a smaller number opens a new list.
fn keep(reader: &mut Reader, index: u8, entry: Listed) {
    let listed = &mut reader.dump.listed;
    if listed.keys().next_back().is_some_and(|last| index <= *last) {
        listed.clear();
    }
    listed.insert(index, entry);
}

/// Replaces a line of the table that the list contradicts: both are of the same register.
fn mend(reader: &mut Reader, index: u8, listed: &Listed) {
    let Listed {
        base,
        size,
        memtype,
    } = *listed;
    let regs = reader.dump.cpu(0);
    let Some(Variable::Words { base: b, mask: m }) = regs.variable.get(&index).copied() else {
        return;
    };
    let (Some(own_base), Some(mask)) = (b, m) else {
        return;
    };
    let pages = mask & !0xfff;
    let own_size = pages & pages.wrapping_neg();
    // Of a mask with holes the kernel works out a size that means nothing.
    let comparable = size.is_power_of_two() && mask & VariableMtrr::V != 0;
    let agree = own_base & !0xfff == base && (pages == 0 || own_size == size);
    if !comparable || agree {
        return;
    }
    let range = Variable::Range {
        base,
        size,
        memtype,
    };
    regs.variable.insert(index, range);
    reader.dump.notes.push(format!(
        "variable range {index}: the line of the table is damaged (base {:#x}, mask {pages:#x}); \
         shown is what the kernel's own list below it says",
        own_base & !0xfff
    ));
}

/// Uses the list once the input has ended: it stands in for a table that is not there, and for
/// lines of it that are missing.
pub fn finish(reader: &mut Reader) {
    let listed = reader.dump.listed.clone();
    let table = reader.dump.cpu_if_any(0).is_some_and(|regs| {
        let mut entries = regs.variable.values();
        entries.any(|entry| matches!(entry, Variable::Words { .. }))
    });
    if let (Some(line), false) = (reader.list_cut, table) {
        let why = "cut short: base, range and type wanted";
        reader.dump.complain(line, why);
    }
    if listed.is_empty() || !reader.proc_mtrr.is_empty() && !table {
        return;
    }
    reader.dump.tables = reader.dump.tables.max(1);
    for (index, entry) in &listed {
        mend(reader, *index, entry);
    }
    for (
        index,
        Listed {
            base,
            size,
            memtype,
        },
    ) in listed
    {
        let regs = reader.dump.cpu(0);
        regs.variable.entry(index).or_insert(Variable::Range {
            base,
            size,
            memtype,
        });
    }
}

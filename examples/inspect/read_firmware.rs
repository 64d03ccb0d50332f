//! Firmware logs: coreboot old and new, EDK2, the `mtrr` commands of U-Boot and Slim Bootloader.

use mtrr_pat::regs::{FIXED_COUNT, MAX_VARIABLE};

use super::read::Reader;
use super::regs::Variable;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    listed(reader, line)
        || coreboot_setup(reader, line)
        || coreboot_old(reader, line)
        || coreboot_map(reader, line)
        || edk2_fixed(reader, line)
        || u_boot(reader, line)
        || slim_bootloader(reader, line)
}

/// coreboot's headings: the width, the default type, what is on.
fn coreboot_setup(reader: &mut Reader, line: &Line<'_>) -> bool {
    let cpu = super::read_msr::cpu_of(line).filter(|_| line.text.contains("apic_id"));
    let cpu = cpu.unwrap_or(reader.cpu);
    if let Some(text) = line.after("physical address size:") {
        match text.split_whitespace().next().and_then(|n| n.parse().ok()) {
            Some(bits) => {
                reader.dump.stated_bits = Some((bits, "physical address size".into()));
                // The lines that follow are for this CPU, until another is named.
                reader.cpu = cpu;
            }
            None => reader
                .dump
                .complain(line.number, "a physical address size without a number"),
        }
    } else if line.text.contains("Physical address space:") {
        reader.temporary = line.text.contains("TEMPORARY");
        if !reader.temporary {
            reader.dump.ram.clear();
        }
    } else if line.text.contains("selected as default type") {
        if !reader.temporary {
            let name = line
                .text
                .split("MTRR:")
                .nth(1)
                .and_then(|t| t.split_whitespace().next());
            let regs = reader.dump.cpu(cpu);
            regs.default = name.and_then(words::memtype).or(regs.default);
            // coreboot turns the MTRRs on as soon as they are written.
            regs.enabled.get_or_insert(true);
        }
    } else if let Some(text) = line.after("MTRR counts: ") {
        let numbers = text.trim_end_matches('.').split_once('/');
        let numbers =
            numbers.and_then(|(wb, uc)| Some((wb.parse().ok()?, uc.trim().parse().ok()?)));
        reader.dump.listing.lengths = numbers.filter(|_| !reader.temporary);
    } else if line.text.contains("Fixed MTRRs") && line.text.contains("abled") {
        reader.dump.cpu(cpu).fixed_enabled = Some(line.text.contains("Enabled"));
    } else if line.text.contains("Variable MTRRs:") && line.text.contains("abled") {
        reader.dump.cpu(cpu).enabled = Some(line.text.contains("Enabled"));
    } else {
        return false;
    }
    true
}

/// fwts: `Reg 4: 0x00000000dc000000 - 0x00000000e0000000 (  64 MB) Uncached`; mail:
/// `variable range 0: 000000000-03FFFFFFF WB`, `variable range 3: disabled`.
fn listed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let head = line.after("Reg ").or_else(|| line.after("variable range "));
    let Some((index, rest)) = head.and_then(|text| text.split_once(':')) else {
        return false;
    };
    let Ok(index) = index.trim().parse::<u8>() else {
        return false;
    };
    if usize::from(index) >= MAX_VARIABLE {
        return false;
    }
    let entry = if rest.trim() == "disabled" {
        Variable::Off
    } else {
        let mut words = rest.split([' ', '-', '\t']).filter(|word| !word.is_empty());
        let (Some(base), Some(end)) = (
            words.next().and_then(words::hex),
            words.next().and_then(words::hex),
        ) else {
            return false;
        };
        let end = end.saturating_add(end & 1);
        let memtype = rest.split_whitespace().rev().find_map(words::memtype);
        let (Some(memtype), true) = (memtype, end > base) else {
            return false;
        };
        Variable::Range {
            base,
            size: end - base,
            memtype,
        }
    };
    reader.table_entry(0, index);
    reader.dump.cpu(0).variable.insert(index, entry);
    true
}

/// `Setting variable MTRR 0, base:    0MB, range: 2048MB, type WB`
fn coreboot_old(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(text) = line.after("variable MTRR ") else {
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
            if usize::from(index) < MAX_VARIABLE && base.checked_add(size).is_some() {
                let cpu = reader.cpu;
                reader.table_entry(cpu, index);
                let range = Variable::Range {
                    base,
                    size,
                    memtype,
                };
                reader.dump.cpu(cpu).variable.insert(index, range);
            }
        }
        _ => reader
            .dump
            .complain(line.number, "cut short: base, range and type wanted"),
    }
    true
}

/// `0x0000000000100000 - 0x000000007affffff size 0x7af00000 type 6`: cacheable memory is RAM.
fn coreboot_map(reader: &mut Reader, line: &Line<'_>) -> bool {
    let (Some(size), Some(memtype)) = (line.atom_after("size"), line.atom_after("type")) else {
        return false;
    };
    let Some(at) = line.words.iter().position(|word| *word == "-") else {
        return false;
    };
    let first = at
        .checked_sub(1)
        .and_then(|i| line.words.get(i))
        .and_then(|w| words::hex(w));
    let last = line.words.get(at + 1).and_then(|word| words::hex(word));
    let (Some(first), Some(_), Some(size)) = (first, last, words::hex(size)) else {
        return false;
    };
    if memtype == "6" && !reader.temporary {
        reader.dump.add_ram(first, first.saturating_add(size));
    }
    true
}

/// EDK2: `Fixed MTRR[00]   : 0606060606060606`.
fn edk2_fixed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let at = line.atoms.iter().position(|atom| *atom == "Fixed");
    let Some([mtrr, index, word]) = at.and_then(|at| line.atoms.get(at + 1..at + 4)) else {
        return false;
    };
    if *mtrr != "MTRR" {
        return false;
    }
    let (Ok(index), Some(word)) = (index.parse::<usize>(), words::hex(word)) else {
        return false;
    };
    if index >= FIXED_COUNT {
        return false;
    }
    let cpu = reader.cpu;
    reader.dump.cpu(cpu).set_fixed_word(index, word);
    true
}

/// Slim Bootloader: `MTRRs......: Enabled`, `Default....: Uncacheable`; then the pairs that are on.
fn slim_bootloader(reader: &mut Reader, line: &Line<'_>) -> bool {
    let cpu = reader.cpu;
    if let Some(text) = line.after("MTRRs......:") {
        reader.dump.cpu(cpu).enabled = Some(text.contains("Enabled"));
        reader.dump.listing.used_only = true;
        reader.dump.listing.open_ended = true;
    } else if let Some(memtype) = line.after("Default....:").and_then(words::memtype) {
        reader.dump.cpu(cpu).default = Some(memtype);
    } else {
        return false;
    }
    true
}

/// U-Boot: `0   Y     Back         0000000000000000 0000007f80000000 0000000080000000`.
fn u_boot(reader: &mut Reader, line: &Line<'_>) -> bool {
    if line.words.starts_with(&["Reg", "Valid"]) {
        let listing = &mut reader.dump.listing;
        listing.headed |= listing.last_record == 0;
        return true;
    }
    let [index, valid, name, base, mask, _size] = line.words.as_slice() else {
        return false;
    };
    let memtype = match *name {
        "Back" => 6,
        "Protect" => 5,
        "Through" => 4,
        "Combine" => 1,
        "Uncacheable" => 0,
        _ => return false,
    };
    let (Ok(index), Some(base), Some(mask)) =
        (index.parse::<u8>(), words::hex(base), words::hex(mask))
    else {
        return false;
    };
    if usize::from(index) >= MAX_VARIABLE {
        return false;
    }
    let cpu = reader.cpu;
    reader.table_entry(cpu, index);
    reader.dump.listing.every = true;
    let entry = if *valid == "Y" {
        Variable::Words {
            base: Some(base & !0xfff | memtype),
            mask: Some(mask & !0xfff | 1 << 11),
        }
    } else {
        Variable::Off
    };
    reader.dump.cpu(cpu).variable.insert(index, entry);
    true
}

//! MSR lists: `MSR=value`, registers by name, per CPU.

use std::ops::Range;

use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{IORR_COUNT, MsrAddr};

use super::marks::Listing;
use super::msr_names::register_named;
use super::read::Reader;
use super::regs::Regs;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    heading(reader, line)
        || pair(reader, line)
        || named(reader, line)
        || numbered(reader, line)
        || tagged(reader, line)
}

/// The CPU a line names: `apic_id 0x20`, `CPU 3`, `cpu3`, `CPU#3`.
pub fn cpu_of(line: &Line<'_>) -> Option<u32> {
    if let Some(id) = line.atom_after("apic_id") {
        return words::hex(id).and_then(|id| u32::try_from(id).ok());
    }
    let at = line
        .atoms
        .iter()
        .position(|atom| cpu_word(atom).is_some())?;
    match cpu_word(line.atoms.get(at)?)? {
        "" => line.atoms.get(at + 1)?.parse().ok(),
        digits => digits.parse().ok(),
    }
}

/// What follows "cpu" or "core" in a word that is nothing else: `""` or digits.
fn cpu_word(atom: &str) -> Option<&str> {
    let head = atom.get(..3)?;
    let rest = if head.eq_ignore_ascii_case("cpu") {
        atom.get(3..)?
    } else if atom.get(..4)?.eq_ignore_ascii_case("core") {
        atom.get(4..)?
    } else {
        return None;
    };
    rest.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(rest)
}

/// A line that is only `CPU 3:` or `--- cpu3 ---`.
fn heading(reader: &mut Reader, line: &Line<'_>) -> bool {
    let alone = match line.atoms.as_slice() {
        [word] => cpu_word(word).is_some_and(|rest| !rest.is_empty()),
        [word, number] => cpu_word(word) == Some("") && number.parse::<u32>().is_ok(),
        _ => false,
    };
    match (alone, cpu_of(line)) {
        (true, Some(cpu)) => {
            reader.cpu = cpu;
            true
        }
        _ => false,
    }
}

/// `PHYS0 0xff000005/0xffffff000800`, `pair0 0x6 / 0x3FFFF8000800`: base and mask in one line.
fn pair(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(at) = line.atoms.iter().position(|atom| pair_name(atom).is_some()) else {
        return false;
    };
    let Some(mut index) = line.atoms.get(at).and_then(|atom| pair_name(atom)) else {
        return false;
    };
    let mut values = line.atoms.iter().skip(at + 1);
    if index.is_empty() {
        index = values.next().copied().unwrap_or("");
    }
    let (Some(base), Some(mask)) = (next_value(&mut values), next_value(&mut values)) else {
        return false;
    };
    let Ok(index) = index.parse::<u8>() else {
        return false;
    };
    let cpu = cpu_of(line).unwrap_or(reader.cpu);
    let regs = reader.dump.cpu(cpu);
    regs.set_variable_word(index, false, base);
    regs.set_variable_word(index, true, mask);
    reader.msr_list = true;
    true
}

/// What follows `PHYS`, `pair`, `MTRR` or `var` in a word that has only digits after it.
fn pair_name(atom: &str) -> Option<&str> {
    let digits = atom.trim_start_matches(|c: char| !c.is_ascii_digit());
    let name = atom.get(..atom.len() - digits.len())?.to_ascii_lowercase();
    matches!(name.as_str(), "phys" | "pair" | "mtrr" | "var" | "variable").then_some(digits)
}

/// The next atom, when it is a `0x` number or has eight digits or more.
fn next_value<'a>(atoms: &mut impl Iterator<Item = &'a &'a str>) -> Option<u64> {
    let atom = atoms.next()?;
    (atom.starts_with("0x") || atom.len() >= 8)
        .then(|| words::hex(atom))
        .flatten()
}

/// `IA32_MTRR_DEF_TYPE = 0xc06`, `MTRRphysBase0 (0x200): 0x6`.
fn named(reader: &mut Reader, line: &Line<'_>) -> bool {
    // Linux prints "TOM2: .. aka 4864M" only when it acts: that says more than the register.
    let digits = line.after("TOM2: ").map(|rest| rest.trim_start());
    let cut = digits.is_some_and(|d| !d.starts_with("0x") && d.trim_end().len() < 16);
    if line.words.contains(&"aka") || cut || line.text.contains("(WB)") {
        return false;
    }
    let found = line.atoms.iter().enumerate().find_map(|(at, atom)| {
        let next = line.atoms.get(at + 1).copied().unwrap_or("");
        register_named(atom, next).map(|(msr, extra)| (at + extra, msr))
    });
    let Some((at, msr)) = found else {
        return false;
    };
    let rest = line.atoms.get(at + 1..).unwrap_or_default();
    // The address may be repeated after the name.
    let rest = match rest.first().and_then(|atom| words::hex(atom)) {
        Some(first) if first == u64::from(msr) && rest.len() > 1 => {
            rest.get(1..).unwrap_or_default()
        }
        _ => rest,
    };
    values(reader, line, msr, rest)
}

/// `0x200: 0x80000006`, `MSR 0x250 0x0606060606060606`, `msr[2ff] = c06`.
fn numbered(reader: &mut Reader, line: &Line<'_>) -> bool {
    let after_msr = line.atoms.iter().position(|atom| {
        let traced = ["msr_read", "msr_write", "wrmsr"].contains(atom);
        traced || atom.eq_ignore_ascii_case("msr")
    });
    let at = match after_msr {
        Some(at) => at + 1,
        None => match line.atoms.first().map(|atom| cpu_word(atom)) {
            Some(Some("")) => 2,
            Some(Some(_)) => 1,
            _ => 0,
        },
    };
    let Some(atom) = line.atoms.get(at) else {
        return false;
    };
    let known_form = after_msr.is_some() || atom.starts_with("0x") || reader.msr_list;
    let Some(msr) = words::hex(atom).and_then(|msr| u32::try_from(msr).ok()) else {
        return false;
    };
    if !known_form || !is_ours(msr) {
        return false;
    }
    values(
        reader,
        line,
        msr,
        line.atoms.get(at + 1..).unwrap_or_default(),
    )
}

/// NetBSD, when built to show them: `init mtrr: 200: 0000000000000006`.
fn tagged(reader: &mut Reader, line: &Line<'_>) -> bool {
    let value = line.word_from_end(0);
    let number = line.word_from_end(1).strip_suffix(':');
    let msr = number
        .filter(|digits| digits.len() == 3)
        .and_then(words::hex);
    let (Some(msr), 16, Some(word)) = (msr, value.len(), words::hex(value)) else {
        return false;
    };
    let cpu = cpu_of(line).unwrap_or(reader.cpu);
    (0x200..0x300).contains(&msr) && store(reader, cpu, msr as u32, word)
}

/// Stores the values after a register: one, one per CPU, or two halves of eight digits.
fn values(reader: &mut Reader, line: &Line<'_>, msr: u32, rest: &[&str]) -> bool {
    let skip = rest
        .iter()
        .take_while(|atom| atom.eq_ignore_ascii_case("value"))
        .count();
    let numbers: Vec<(&str, u64)> = rest
        .iter()
        .skip(skip)
        .map_while(|atom| words::hex(atom).map(|value| (*atom, value)))
        .collect();
    let first = cpu_of(line).unwrap_or(reader.cpu);
    let bad = numbers.is_empty()
        && rest.get(skip).is_some_and(|atom| atom.starts_with("0x"))
        && line.text.contains(['=', ':']);
    if bad {
        reader.dump.complain(
            line.number,
            format!("the value of {} is not a number", MsrAddr(msr)),
        );
        return true;
    }
    // `msr[0x000277]=00 07 04 06 00 07 04 06`: eight bytes, the highest first.
    if numbers.len() == 8 && numbers.iter().all(|(atom, _)| atom.len() == 2) {
        let word = numbers.iter().fold(0, |word, (_, byte)| word << 8 | byte);
        return store(reader, first, msr, word);
    }
    let long = |atom: &str| atom.trim_start_matches("0x").len() == 8;
    match numbers.as_slice() {
        [] => false,
        [(high, a), (low, b)] if long(high) && long(low) && may_be_high(msr, *a) => {
            store(reader, first, msr, a << 32 | b)
        }
        many => many
            .iter()
            .zip(first..)
            .fold(false, |any, ((_, value), cpu)| {
                store(reader, cpu, msr, *value) || any
            }),
    }
}

/// Whether `half` can be the upper half of register `msr`: addresses end at 52 bits.
fn may_be_high(msr: u32, half: u64) -> bool {
    let bytes = msr == MsrAddr::PAT.0 || FIXED_RANGES.iter().any(|range| range.msr.0 == msr);
    bytes || half < 1 << 20
}

/// AMD's I/O ranges, base and mask of each.
pub const IORRS: Range<u32> = MsrAddr::iorr_base(0).0..MsrAddr::iorr_base(IORR_COUNT).0;

/// Whether this tool has a use for a register.
pub fn is_ours(msr: u32) -> bool {
    matches!(
        MsrAddr(msr),
        MsrAddr::MTRRCAP
            | MsrAddr::MTRR_DEF_TYPE
            | MsrAddr::PAT
            | MsrAddr::SYSCFG
            | MsrAddr::TOP_MEM
            | MsrAddr::TOP_MEM2
            | MsrAddr::TME_ACTIVATE
    ) || (0x200..0x250).contains(&msr)
        || IORRS.contains(&msr)
        || FIXED_RANGES.iter().any(|range| range.msr.0 == msr)
}

/// Stores `value` of register `msr` of `cpu`; false when the register is none of ours.
pub fn store(reader: &mut Reader, cpu: u32, msr: u32, value: u64) -> bool {
    if !is_ours(msr) {
        return false;
    }
    reader.msr_list = true;
    reader.saw(Listing::Msr, cpu, msr);
    if (0x200..0x250).contains(&msr) {
        reader.dump.listing.last_record = reader.dump.records;
    }
    store_in(reader.dump.cpu(cpu), msr, value);
    true
}

/// Stores `value` of register `msr`, one of ours.
pub fn store_in(regs: &mut Regs, msr: u32, value: u64) {
    match MsrAddr(msr) {
        MsrAddr::MTRRCAP => regs.cap = Some(value),
        MsrAddr::MTRR_DEF_TYPE => regs.set_def_type(value),
        MsrAddr::PAT => regs.pat = Some(value),
        MsrAddr::SYSCFG => regs.syscfg = Some(value),
        MsrAddr::TOP_MEM2 => regs.top_mem2 = Some(value),
        MsrAddr::TOP_MEM => regs.top_mem = Some(value),
        MsrAddr::TME_ACTIVATE => regs.tme_activate = Some(value),
        _ if IORRS.contains(&msr) => {
            let place = msr - IORRS.start;
            regs.set_iorr_word(place as usize / 2, place & 1 == 1, value);
        }
        _ if (0x200..0x250).contains(&msr) => {
            regs.set_variable_word(((msr - 0x200) / 2) as u8, msr & 1 == 1, value);
        }
        _ => {
            if let Some(index) = FIXED_RANGES.iter().position(|range| range.msr.0 == msr) {
                regs.set_fixed_word(index, value);
            }
        }
    }
}

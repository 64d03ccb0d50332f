//! LinuxBIOS and early coreboot: fixed ranges by their numbers, and what was turned on.

use mtrr_pat::ranges::FIXED_RANGES;

use super::read::Reader;
use super::words::{self, Line};

/// Reads one line, when it is one of these formats.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    fixed(reader, line) || enabled(reader, line)
}

/// `Setting fixed MTRRs(0-16) type: WB`: of 88 ranges, the last number not included.
fn fixed(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(text) = line.after("Setting fixed MTRRs(") else {
        return false;
    };
    let numbers = text.split_once(')').and_then(|(range, rest)| {
        let (first, end) = range.split_once('-')?;
        let name = rest
            .split(':')
            .nth(1)?
            .split([',', ' '])
            .find(|word| !word.is_empty())?;
        Some((
            first.trim().parse().ok()?,
            end.trim().parse::<usize>().ok()?,
            words::memtype(name)?,
        ))
    });
    let Some((first, end, memtype)) = numbers else {
        let why = "cut short: two numbers and a type wanted";
        reader.dump.complain(line.number, why);
        return true;
    };
    let cpu = reader.cpu;
    for number in first..end.min(8 * FIXED_RANGES.len()) {
        let Some(range) = FIXED_RANGES.get(number / 8) else {
            continue;
        };
        let start = range.base + (number % 8) as u64 * range.step;
        let regs = reader.dump.cpu(cpu);
        regs.set_fixed_range(start, start + range.step - 1, memtype);
    }
    true
}

/// `call intel_enable_fixed_mtrr()`, `call enable_var_mtrr()`
fn enabled(reader: &mut Reader, line: &Line<'_>) -> bool {
    let cpu = reader.cpu;
    if line.text.contains("enable_fixed_mtrr()") {
        reader.dump.cpu(cpu).fixed_enabled = Some(true);
    } else if line.text.contains("enable_var_mtrr()") {
        reader.dump.cpu(cpu).enabled = Some(true);
    } else {
        return false;
    }
    true
}

//! Gaps of a dump: what is taken for a register that it does not show.

use std::collections::BTreeMap;

use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::VariableMtrr;

use super::dump::Dump;
use super::regs::{Regs, Variable};
use super::width;

/// `regs` with what the dump says elsewhere, and `--default`.
pub fn complete(regs: &Regs, dump: &Dump, default: Option<MemType>) -> Regs {
    let mut regs = regs.clone();
    regs.default = regs.default.or(default.map(MemType::raw));
    if dump.no_pat {
        regs.pat = None;
    }
    regs
}

/// Sorted, overlaps and neighbours joined.
pub fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// How many variable ranges to take for existing.
pub fn variable_count(regs: &Regs) -> usize {
    let top = regs
        .variable
        .keys()
        .next_back()
        .map_or(0, |last| usize::from(*last) + 1);
    let listed_off = regs.variable.values().any(|entry| *entry == Variable::Off);
    match regs.cap {
        Some(cap) => usize::from(cap as u8),
        None if listed_off => top,
        None if top <= 8 => 8,
        None => top.next_multiple_of(2),
    }
}

/// The default type when the dump does not say: RAM has to be write-back one way or the other.
pub fn assumed_default(regs: &Regs) -> MemType {
    let back = MemType::WriteBack.raw();
    let some_back = regs.variable.values().any(|entry| match entry {
        Variable::Off => false,
        Variable::Range { memtype, .. } => *memtype == back,
        Variable::Words { base, mask } => {
            base.is_some_and(|base| base as u8 == back)
                && mask.is_some_and(|mask| mask & VariableMtrr::V != 0)
        }
    });
    if some_back {
        MemType::Uncachable
    } else {
        MemType::WriteBack
    }
}

/// `regs` of an AP, with what its dump does not show taken from the boot CPU, and without what is
/// not shown of the boot CPU: the two differ in nothing that only one of them shows.
pub fn filled(regs: &Regs, boot: &Regs) -> Regs {
    let mut out = regs.clone();
    out.default = out.default.filter(|_| boot.default.is_some());
    out.enabled = out.enabled.filter(|_| boot.enabled.is_some());
    out.fixed_enabled = out.fixed_enabled.filter(|_| boot.fixed_enabled.is_some());
    out.pat = out.pat.filter(|_| boot.pat.is_some());
    out.syscfg = out.syscfg.filter(|_| boot.syscfg.is_some());
    out.top_mem2 = out.top_mem2.filter(|_| boot.top_mem2.is_some());
    out.cap = out.cap.or(boot.cap);
    out.default = out.default.or(boot.default);
    out.enabled = out.enabled.or(boot.enabled);
    out.fixed_enabled = out.fixed_enabled.or(boot.fixed_enabled);
    out.pat = out.pat.or(boot.pat);
    out.syscfg = out.syscfg.or(boot.syscfg);
    out.top_mem2 = out.top_mem2.or(boot.top_mem2);
    for (own, boot) in out.fixed.iter_mut().zip(&boot.fixed) {
        for byte in (0..8).filter(|byte| own.known & boot.known & 1 << byte == 0) {
            let mask = 0xff << (byte * 8);
            own.word = own.word & !mask | boot.word & mask;
        }
        own.known = boot.known;
    }
    let mut variable: BTreeMap<u8, Variable> = boot.variable.clone();
    for (index, of_boot) in &mut variable {
        let Some(own) = regs.variable.get(index) else {
            continue;
        };
        *of_boot = match (*own, *of_boot) {
            (Variable::Words { base, mask }, Variable::Words { base: b, mask: m }) => {
                Variable::Words {
                    base: b.and(base.or(b)),
                    mask: m.and(mask.or(m)),
                }
            }
            _ => *own,
        };
    }
    out.variable = variable;
    out
}

/// The register pair for one entry of a dump.
pub fn words_of(entry: &Variable, bits: PhysBits) -> VariableMtrr {
    match *entry {
        Variable::Off => VariableMtrr::default(),
        // Half a range says nothing but that it is in use.
        Variable::Words { base: None, .. } => VariableMtrr::default(),
        Variable::Words { base, mask } => VariableMtrr {
            base: base.unwrap_or(0),
            mask: mask.unwrap_or(0),
        },
        Variable::Range {
            base,
            size,
            memtype,
        } => VariableMtrr {
            base: base | u64::from(memtype),
            mask: width::mask_for(size, bits) | VariableMtrr::V,
        },
    }
}

//! The map of types that Linux prints since 6.5 (`mtrr=debug`): what it made of the registers, in
//! place of registers that the input lacks.

use std::collections::BTreeMap;

use mtrr_pat::layout::{FixedRanges, Region, Unlisted, Wanted};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::regs::{MAX_VARIABLE, MtrrCap, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::goal;
use super::plan;
use super::regs::Regs;

/// Most entries kept; Linux has room for 600.
const MOST: usize = 1024;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// The type.
    pub memtype: MemType,
}

/// The list. What no entry has is of the default type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelMap {
    /// By number.
    pub entries: BTreeMap<u16, Entry>,
    /// How many entries there are, and how many of them are fixed ranges, where the input says so.
    pub counts: Option<(u16, u16)>,
}

impl KernelMap {
    /// Notes entry `number`.
    pub fn add(&mut self, number: u16, entry: Entry) {
        if entry.start < entry.end && self.entries.len() < MOST {
            self.entries.insert(number, entry);
        }
    }

    /// Whether `start..end` lies in one entry, or touches none and has the default type.
    pub fn one_type(&self, start: u64, end: u64) -> bool {
        let mut touched = self
            .entries
            .values()
            .filter(|entry| entry.start < end && start < entry.end);
        match (touched.next(), touched.next()) {
            (None, _) => self.missing().is_empty(),
            (Some(entry), None) => entry.start <= start && end <= entry.end,
            _ => false,
        }
    }

    /// Gives `regs` the fixed ranges it lacks: entries inside the first MiB that are counted as
    /// such, or all of them where none reaches beyond it.
    pub fn fill_fixed(&self, regs: &mut Regs) {
        let reaches_over = |entry: &Entry| entry.start < FIXED_END && entry.end > FIXED_END;
        let count = match self.counts {
            Some((_, fixed)) => fixed,
            None if self.entries.values().any(reaches_over) => 0,
            None => u16::MAX,
        };
        if regs.fixed_enabled == Some(false) {
            return;
        }
        let mut listed = Regs::default();
        let fixed = self.entries.range(..count).map(|(_, entry)| entry);
        for entry in fixed.filter(|entry| entry.end <= FIXED_END) {
            listed.set_fixed_range(entry.start, entry.end - 1, entry.memtype.raw());
            regs.fixed_enabled = Some(true);
        }
        for (own, listed) in regs.fixed.iter_mut().zip(listed.fixed) {
            let gaps = listed.known & !own.known;
            for byte in (0..8).filter(|byte| gaps >> byte & 1 == 1) {
                let mask = 0xff << (byte * 8);
                own.word = own.word & !mask | listed.word & mask;
                own.known |= 1 << byte;
            }
        }
    }

    /// Numbers of entries that exist and are not in the input.
    pub fn missing(&self) -> Vec<u8> {
        let last = self.entries.keys().next_back().map_or(0, |last| last + 1);
        let count = self.counts.map_or(last, |(count, _)| count.max(last));
        let numbers = (0..count).filter(|number| !self.entries.contains_key(number));
        numbers
            .filter_map(|number| u8::try_from(number).ok())
            .collect()
    }

    /// What no entry has and is not certain: all of it where the default type is not known, else
    /// what lies beside an entry that is missing. Half-open.
    pub fn open(&self, default_known: bool, end: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let (mut next, mut at) = (0, 0);
        for (number, entry) in &self.entries {
            if entry.start > at && (*number != next || !default_known) {
                out.push((at, entry.start));
            }
            (next, at) = (number.saturating_add(1), at.max(entry.end));
        }
        let whole = self.counts.is_none_or(|(count, _)| count <= next);
        if at < end && !(whole && default_known) {
            out.push((at, end));
        }
        out
    }

    /// What default type makes sense of the list: RAM has to be write-back.
    pub fn likely_default(&self) -> MemType {
        let high = self.entries.values().filter(|entry| entry.end > FIXED_END);
        let mut types = high.map(|entry| entry.memtype);
        match types.any(|memtype| memtype == MemType::WriteBack) {
            true => MemType::Uncachable,
            false => MemType::WriteBack,
        }
    }

    /// `shown`, the registers as far as they are in the input, with variable ranges that give this
    /// map; `None` where none do. They are not those of the machine.
    pub fn stand_in(&self, shown: &Snapshot, fixed: FixedRanges) -> Option<Snapshot> {
        let mut out = *shown;
        out.variable = [VariableMtrr::default(); MAX_VARIABLE];
        let region = |entry: &Entry| goal::region(entry.start, entry.end, entry.memtype);
        let end = shown.phys_bits.end();
        let mut regions: Vec<Region> = Vec::new();
        let default = shown.def_type.memtype().ok()?;
        let mut at = 0;
        for entry in self.entries.values().filter(|entry| entry.end <= end) {
            if entry.start < at {
                return None;
            }
            regions.push(goal::region(at, entry.start, default));
            regions.push(region(entry));
            at = entry.end;
        }
        regions.push(goal::region(at, end, default));
        regions.retain(|region| region.start < region.end);
        let wanted = Wanted::new(&regions, shown.phys_bits, MAX_VARIABLE);
        let wanted = wanted.fixed_ranges(fixed).unlisted(Unlisted::Uncachable);
        let plan = plan::exact(&wanted, default).ok()??;
        let count = plan.registers().len().max(shown.variable_count());
        for (slot, pair) in out.variable.iter_mut().zip(plan.registers()) {
            *slot = *pair;
        }
        let flags = shown
            .cap
            .map_or(MtrrCap::WC.bits(), |cap| cap.bits() & !0xff);
        out.cap = Some(MtrrCap::from_raw(flags | count as u64));
        Some(out)
    }
}

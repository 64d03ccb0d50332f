//! From what a dump says to whole register files: every assumption made on the way is noted.

use mtrr_pat::layout::FixedRanges;
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg};
use mtrr_pat::snapshot::Snapshot;

use super::dump::Dump;
use super::fill::{assumed_default, complete, filled, merged, variable_count, words_of};
use super::gaps::Gaps;
use super::machine::Machine;
use super::regs::Regs;
use super::width;

/// Fills the gaps of `dump`. `flag` is `--phys-bits`, `default` is `--default`.
pub fn resolve(dump: Dump, flag: Option<PhysBits>, default: Option<MemType>) -> Machine {
    let mut notes = dump.notes.clone();
    let (bits, bits_from) = width::find(&dump, flag, &mut notes);
    let first = dump.cpus.iter().find(|(_, regs)| regs.has_mtrr());
    let first = first.or_else(|| dump.cpus.iter().next());
    let boot = first.map(|(number, regs)| (*number, complete(regs, &dump, default)));
    // A log of complaints alone still has something to say.
    let boot = boot.or_else(|| dump.speaks().then(|| (0, Regs::default())));
    let mut machine = Machine {
        cpus: Vec::new(),
        shown: None,
        routing: Vec::new(),
        bits,
        bits_from,
        enabled_known: true,
        default_known: true,
        fixed_known: true,
        count_known: true,
        gaps: Gaps::default(),
        ram: merged(dump.ram.clone()),
        ram_end: None,
        notes,
        dump,
    };
    machine.ram_end = machine
        .ram
        .last()
        .map(|range| range.1)
        .or(machine.dump.ram_end);
    if let Some((number, boot)) = boot {
        machine.add_boot(number, &boot);
        machine.add_others(number, &boot);
    }
    machine.note_input();
    machine
}

impl Machine {
    fn add_boot(&mut self, number: u32, regs: &Regs) {
        self.routing.push(regs.routing());
        if !regs.has_mtrr() && self.dump.kernel_map.entries.is_empty() {
            let mut snapshot = Snapshot::empty(self.bits);
            snapshot.pat = regs.pat.map(Pat::from_raw);
            snapshot.syscfg = regs.syscfg.map(SysCfg::from_raw);
            self.enabled_known = false;
            self.default_known = false;
            self.fixed_known = false;
            self.count_known = false;
            self.cpus.push((number, snapshot));
            self.notes
                .push("the dump shows no MTRRs: no map can be worked out".into());
            return;
        }
        self.gaps = Gaps::of(regs, &self.dump, self.bits.get());
        self.note_gaps(regs);
        let shown = self.snapshot(regs);
        let snapshot = self.stand_in(&shown, regs);
        self.shown = snapshot.map(|_| shown);
        self.cpus.push((number, snapshot.unwrap_or(shown)));
    }

    /// The registers with variable ranges that give the map the kernel printed, where those of the
    /// machine are not all in the dump.
    fn stand_in(&mut self, shown: &Snapshot, regs: &Regs) -> Option<Snapshot> {
        let map = &self.dump.kernel_map;
        let one = self
            .dump
            .cpus
            .values()
            .filter(|regs| regs.has_mtrr())
            .count()
            <= 1;
        if map.entries.is_empty() || !self.gaps.variable() || !one || regs.enabled == Some(false) {
            return None;
        }
        let fixed = match regs.fixed_enabled {
            Some(false) => FixedRanges::Off,
            _ => FixedRanges::On,
        };
        let with_default = |default: MemType| {
            let flags = shown.def_type.raw() & !0xff;
            let def_type = MtrrDefType::from_raw(flags | u64::from(default.raw()));
            map.stand_in(&Snapshot { def_type, ..*shown }, fixed)
        };
        let stand_in = match regs.default {
            Some(_) => map.stand_in(shown, fixed),
            // What the list leaves out is not known either way.
            None => with_default(map.likely_default())
                .or_else(|| with_default(MemType::Uncachable))
                .or_else(|| with_default(MemType::WriteBack)),
        };
        if stand_in.is_some() {
            self.gaps.top_mem2 = false;
            self.notes.push(
                "the map is the one the kernel printed (\"MTRR map\"): the registers in the input are \
                 too few to work it out"
                    .into(),
            );
        }
        stand_in
    }

    /// Says what the dump leaves open.
    fn note_gaps(&mut self, regs: &Regs) {
        self.enabled_known = regs.enabled.is_some();
        self.default_known = regs.default.is_some();
        let no_fixed = regs.cap.is_some_and(|cap| cap >> 8 & 1 == 0);
        self.fixed_known = no_fixed || regs.fixed_enabled == Some(false) || regs.fixed_known();
        if !no_fixed && regs.fixed_known() && regs.fixed_enabled.is_none() {
            self.notes
                .push("assumed: the fixed ranges are on (the dump shows them, but not FE)".into());
        }
        self.notes.extend(self.gaps.sentences(regs, &self.dump));
        self.notes.extend(regs.cap.and_then(cap_note));
        self.count_known = self.gaps.count.is_some();
        if !self.default_known && !self.gaps.none_shown {
            let name = assumed_default(regs).short();
            let why = if name == "UC" {
                "some range is write-back, which would be pointless otherwise"
            } else {
                "no range is write-back, and RAM has to be"
            };
            self.notes.push(format!(
                "assumed: default type {name} ({why}; the dump does not say)"
            ));
        }
        if !self.fixed_known {
            let seen = if regs.fixed_seen() {
                "incomplete: some types"
            } else {
                "not in the dump: types"
            };
            self.notes
                .push(format!("fixed ranges {seen} below 1 MiB are not known"));
        }
        if !(self.count_known || self.gaps.variable() || self.gaps.silent) {
            let count = variable_count(regs);
            self.notes.push(format!(
                "assumed: {count} variable ranges exist (the dump does not say)"
            ));
        }
    }

    fn add_others(&mut self, boot: u32, boot_regs: &Regs) {
        let others: Vec<(u32, Regs)> = self
            .dump
            .cpus
            .iter()
            .filter(|(number, _)| **number != boot)
            .map(|(number, regs)| (*number, filled(regs, boot_regs)))
            .collect();
        for (number, regs) in others {
            let snapshot = self.snapshot(&regs);
            self.routing.push(regs.routing());
            self.cpus.push((number, snapshot));
        }
    }

    /// The register file for `regs` at this machine's width.
    fn snapshot(&self, regs: &Regs) -> Snapshot {
        let mut snapshot = Snapshot::empty(self.bits);
        let fixed = regs.fixed_seen();
        let count = self.gaps.count.or(self.dump.stated_count.map(usize::from));
        let count = count.unwrap_or_else(|| variable_count(regs));
        let cap = regs
            .cap
            .unwrap_or_else(|| count as u64 | MtrrCap::WC.bits() | if fixed { 1 << 8 } else { 0 });
        // Without the words of the fixed ranges, they cannot be looked up.
        let cap = if fixed {
            cap
        } else {
            cap & !MtrrCap::FIX.bits()
        };
        snapshot.cap = Some(MtrrCap::from_raw(cap));
        let default = regs.default.unwrap_or_else(|| assumed_default(regs).raw());
        let mut def_type = u64::from(default);
        if regs.enabled.unwrap_or(true) {
            def_type |= MtrrDefType::E;
        }
        if regs.fixed_enabled.unwrap_or(fixed) {
            def_type |= MtrrDefType::FE;
        }
        snapshot.def_type = MtrrDefType::from_raw(def_type);
        if fixed {
            for (to, from) in snapshot.fixed.iter_mut().zip(&regs.fixed) {
                *to = from.word;
            }
        }
        for (index, entry) in &regs.variable {
            if let Some(slot) = snapshot.variable.get_mut(usize::from(*index)) {
                *slot = words_of(entry, self.bits);
            }
        }
        snapshot.pat = regs.pat.map(Pat::from_raw);
        snapshot.syscfg = regs.syscfg.map(SysCfg::from_raw);
        snapshot.top_mem2 = regs.top_mem2.unwrap_or(0);
        snapshot
    }

    /// Says what is unusual about the input itself.
    fn note_input(&mut self) {
        if self.boot().is_some_and(|boot| boot.cap.is_some()) && !self.map_known() {
            // Assumptions about a map are of no interest without one.
            self.notes = self.dump.notes.clone();
            self.notes.extend(self.missing());
        }
        if self.dump.summary && !self.map_known() {
            // Assumptions about a map are of no interest without one.
            self.notes = self.dump.notes.clone();
            let text = "the input sums CPUs up and lists no ranges: their map is not known";
            self.notes.push(text.into());
        }
        if self.dump.tables > 1 {
            let tables = self.dump.tables;
            self.notes.push(format!(
                "{tables} tables of variable ranges in the input: the last one is shown"
            ));
        }
        if self.dump.proc_mtrr.is_some() {
            self.notes
                .push("the input has /proc/mtrr too; the fuller table is used".into());
        }
    }
}

/// What is unusual about MTRRCAP.
fn cap_note(cap: u64) -> Option<String> {
    let flags = MtrrCap::from_raw(cap);
    let mut lacks = Vec::new();
    if cap as u8 == 0 {
        lacks.push("no variable ranges");
    }
    if !flags.contains(MtrrCap::FIX) {
        lacks.push("no fixed ranges");
    }
    if !flags.contains(MtrrCap::WC) {
        lacks.push("no write-combining");
    }
    (!lacks.is_empty()).then(|| format!("MTRRCAP {cap:#x}: {}", lacks.join(", ")))
}

//! What a dump lacks of the register file that is looked at: a line that is missing, cut or hidden
//! by a filter says nothing, neither "off" nor "free".

use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::{FIXED_COUNT, MAX_VARIABLE, SysCfg, VariableMtrr};

use super::dump::{Dump, Vendor};
use super::regs::{Regs, Variable};

/// Counts of variable ranges that most processors have: a list of another length may be cut.
const USUAL_COUNTS: [usize; 2] = [8, 10];

/// Only AMD processors print masks for so many bits in a kernel's table.
const AMD_WIDTH: u8 = 48;

/// Whether a dump is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whole {
    /// All that decides is in it.
    Yes,
    /// Nothing is seen to be missing, but its form would not show that.
    #[default]
    Unproved,
    /// Something is missing.
    No,
}

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Whether anything is.
    pub whole: Whole,
    /// Variable ranges that exist and are not shown, ascending.
    pub missing: Vec<u8>,
    /// No variable range is shown at all.
    pub none_shown: bool,
    /// No variable range is shown, and none decides: the MTRRs are off.
    pub silent: bool,
    /// Variable ranges that are shown although MTRRCAP says that they do not exist.
    pub beyond: Vec<u8>,
    /// The list of variable ranges breaks off; this would be the next.
    pub breaks_off: Option<u8>,
    /// TOP_MEM2 may make memory above 4 GiB write-back: the registers that say so are not shown.
    pub top_mem2: bool,
    /// How many variable ranges exist, where the dump proves it.
    pub count: Option<usize>,
}

impl Gaps {
    /// What the dump of `regs` lacks; `bits` is the width.
    pub fn of(regs: &Regs, dump: &Dump, bits: u8) -> Self {
        let mut gaps = Self::default();
        let nothing = !regs.has_mtrr() && dump.kernel_map.entries.is_empty();
        if nothing || dump.summary && regs.variable.is_empty() {
            return gaps;
        }
        let shown = |index: &u8| regs.variable.get(index).is_some_and(known);
        let top = regs.variable.keys().next_back().map_or(0, |last| last + 1);
        let top = top.max(stated_length(regs, dump));
        let stated = regs.cap.map(|cap| cap as u8).or(dump.stated_count);
        let listed = dump.listing.every || regs.cap.is_some() && !dump.listing.used_only;
        let upto = match stated {
            Some(count) if listed && usize::from(count) <= MAX_VARIABLE => count.max(top),
            _ => top,
        };
        gaps.missing = (0..upto).filter(|index| !shown(index)).collect();
        if let Some(cap) = regs.cap {
            gaps.missing.retain(|index| *index < cap as u8);
        }
        let broken = dump.listing.broken.iter().copied();
        let broken = broken.filter(|index| !shown(index) && !gaps.missing.contains(index));
        let broken: Vec<u8> = broken.collect();
        gaps.missing.extend(broken);
        gaps.missing.sort_unstable();
        gaps.none_shown =
            regs.variable.is_empty() && stated != Some(0) && regs.enabled != Some(false);
        gaps.silent = regs.variable.is_empty() && stated.is_none() && !gaps.none_shown;
        gaps.beyond = match regs.cap {
            Some(cap) => regs
                .variable
                .range(cap as u8..)
                .map(|(index, _)| *index)
                .collect(),
            None => Vec::new(),
        };
        gaps.count = stated.map(usize::from);
        if stated.is_none() && dump.listing.every && top > 0 {
            gaps.end_of_list(regs, dump, top);
        }
        gaps.top_mem2 = hides_top_mem2(regs, dump, bits);
        let lacks = !gaps.missing.is_empty() || gaps.none_shown || gaps.breaks_off.is_some();
        let proved = gaps.count.is_some()
            && listed
            && regs.enabled.is_some()
            && regs.default.is_some()
            && (regs.fixed_known() || regs.fixed_enabled == Some(false) || no_fixed(regs));
        gaps.whole = match (lacks, proved) {
            (true, _) => Whole::No,
            (false, true) => Whole::Yes,
            (false, false) => Whole::Unproved,
        };
        gaps
    }

    /// A list of every register, of a machine that does not say how many there are: what its
    /// length and what comes after it tell.
    fn end_of_list(&mut self, regs: &Regs, dump: &Dump, top: u8) {
        let length = usize::from(top);
        let goes_on = dump.records > dump.listing.last_record;
        let last_off = regs.variable.values().next_back() == Some(&Variable::Off);
        let usual = USUAL_COUNTS.contains(&length);
        let plausible = usual || goes_on && length.is_multiple_of(2) && dump.listing.headed;
        if goes_on && plausible {
            self.count = Some(length);
        } else if !plausible && !last_off {
            self.breaks_off = Some(top);
        }
    }

    /// Whether variable ranges are missing: then no address is certain but where one that is shown
    /// says uncachable.
    pub fn variable(&self) -> bool {
        !self.missing.is_empty() || self.none_shown || self.breaks_off.is_some()
    }
}

/// How many ranges coreboot says that its table has; 0 where it does not.
pub fn stated_length(regs: &Regs, dump: &Dump) -> u8 {
    let length = match (dump.listing.lengths, regs.default) {
        (Some((wb, _)), Some(6)) => wb,
        (Some((_, uc)), Some(0)) => uc,
        _ => 0,
    };
    if usize::from(length) <= MAX_VARIABLE {
        length
    } else {
        0
    }
}

/// Whether the dump tells what the range does.
fn known(entry: &Variable) -> bool {
    match entry {
        Variable::Off | Variable::Range { .. } => true,
        Variable::Words { base, mask } => {
            mask.is_some_and(|mask| base.is_some() || mask & VariableMtrr::V == 0)
        }
    }
}

/// Whether the dump tells the same variable ranges of two CPUs.
pub fn same_ranges_shown(a: &Regs, b: &Regs) -> bool {
    let shown = |regs: &Regs| {
        let shown = regs.variable.iter().filter(|(_, entry)| known(entry));
        shown.map(|(index, _)| *index).collect::<Vec<u8>>()
    };
    shown(a) == shown(b)
}

fn no_fixed(regs: &Regs) -> bool {
    regs.cap.is_some_and(|cap| cap >> 8 & 1 == 0)
}

/// Whether TOP_MEM2 may act unseen: an AMD processor, no range above 4 GiB, and no SYSCFG.
fn hides_top_mem2(regs: &Regs, dump: &Dump, bits: u8) -> bool {
    const FOUR_GIB: u64 = super::machine::FOUR_GIB;
    let amd = match dump.vendor {
        Vendor::Amd => true,
        Vendor::Intel => false,
        Vendor::Unknown => dump.listing.every && bits == AMD_WIDTH,
    };
    let high = regs.variable.values().any(|entry| match entry {
        Variable::Off => false,
        Variable::Words { base, .. } => base.is_some_and(|base| base >= FOUR_GIB),
        Variable::Range { base, size, .. } => base.saturating_add(*size) > FOUR_GIB,
    });
    let both = SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
    let forced = regs
        .syscfg
        .map(|word| SysCfg::from_raw(word).contains(both));
    let may_act = match (forced, regs.top_mem2) {
        (Some(forced), top) => forced && top.is_none(),
        (None, top) => top.is_none_or(|top| top > FOUR_GIB),
    };
    let low_ram = dump.ram_top().is_some_and(|end| end <= FOUR_GIB);
    let low_ram = low_ram && (!dump.ram.is_empty() || dump.is_all_ram() != Some(false));
    let default_back = regs.default == Some(MemType::WriteBack.raw());
    let on = regs.enabled != Some(false) && !default_back;
    amd && may_act && dump.hypervisor.is_none() && !high && !low_ram && on
}

/// Sub-ranges below 1 MiB whose type the fixed ranges decide and the dump does not show, half-open.
pub fn unknown_fixed(regs: &Regs) -> Vec<(u64, u64)> {
    use mtrr_pat::ranges::FIXED_RANGES;
    if no_fixed(regs) || regs.fixed_enabled == Some(false) || regs.enabled == Some(false) {
        return Vec::new();
    }
    const _: () = assert!(FIXED_RANGES.len() == FIXED_COUNT);
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (range, fixed) in FIXED_RANGES.iter().zip(&regs.fixed) {
        for byte in (0..8u32).filter(|byte| fixed.known >> byte & 1 == 0) {
            let start = range.base + u64::from(byte) * range.step;
            match out.last_mut() {
                Some(last) if last.1 == start => last.1 = start + range.step,
                _ => out.push((start, start + range.step)),
            }
        }
    }
    out
}

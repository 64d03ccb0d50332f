//! Whether a change of memory types takes away what a cache may hold: when WBINVD is owed.
//!
//! Owns the rule and the comparison of two maps under it; refuses to know who executes WBINVD, and
//! whether the processor snoops its own caches.
//!
//! # The rule
//! A line may be in a cache, clean, if its memory is WB, WT or WP, and modified only if it is WB.
//! So a change owes a flush where memory goes from
//! * WB, WT or WP to UC or WC (AMD's CD included): the access after it need not look into the
//!   caches, reads what memory had before, or is overwritten when a modified line is written back;
//! * WB to WT or WP: a modified line is left under a type whose writes go to memory and take every
//!   line for clean. AMD's table asks for a TLB flush only; Intel's manual does not say; flushing is
//!   right for both.
//!
//! Everything else needs the translations dropped and no more: what becomes cacheable was in no
//! cache, and WT and WP share one state of a line.
//!
//! Two things the registers cannot tell. Lines a firmware cached under a map that it then replaced
//! without a flush are in no map that can be compared. And where threads share the registers, what
//! a sibling cached counts as well: the map in force before is theirs too.
//!
//! Source: AMD APM 2, "Changing Memory Type" (table of serialization requirements), "Memory Types";
//! Intel SDM 3A, "MTRR Considerations in MP Systems", "Preventing Caching", "Programming the PAT",
//! "Methods of Caching Available".

mod decoded;

use self::decoded::Decoded;
use crate::combine::{CombineRule, Effective, PageType};
use crate::memtype::{MemType, PatType};
use crate::overlap::MtrrType;
use crate::pat::Pat;
use crate::ranges::{FIXED_END, FIXED_RANGES};
use crate::snapshot::Snapshot;

/// What decides the memory types on one CPU at one moment.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    /// The MTRRs. The PAT in it does not count.
    pub map: &'a Snapshot,
    /// The PAT.
    pub pat: Pat,
}

impl<'a> From<&'a Snapshot> for InForce<'a> {
    /// What a CPU with these registers has; without a PAT, what PCD and PWT mean then.
    fn from(map: &'a Snapshot) -> Self {
        let pat = map.pat.unwrap_or(Pat::POWER_ON);
        Self { map, pat }
    }
}

/// Most pieces of the two maps that are looked at. Two maps with contiguous masks have fewer than 500
/// together: 80 ranges with two ends each, 88 fields twice, 4 GiB and TOP_MEM2.
const MOST_PIECES: u32 = 512;

impl InForce<'_> {
    /// Whether a CPU with these registers that is given `after` owes its caches a WBINVD.
    ///
    /// Exact for every address of the physical space and every PAT slot, as if each were in use;
    /// `true` where the registers leave a type undefined, and where masks with holes make more than
    /// 512 pieces. SYSCFG and TOP_MEM2, which nobody writes, are those of `self` on both sides. With
    /// E clear nothing was cacheable, and nothing can be lost. Equal maps cost a comparison of
    /// words; of maps that differ, only what differs is walked. Any register content is allowed.
    /// Interrupts as they are; no heap, and less than 1 KiB of stack.
    #[must_use]
    pub fn loses_cacheability(self, after: InForce<'_>, rule: CombineRule) -> bool {
        let before = Decoded::new(self.map, self.map);
        if before.is_uncachable() {
            return false;
        }
        let mut change = Change {
            before,
            after: Decoded::new(after.map, self.map),
            pats: (self.pat, after.pat),
            rule,
            slots_lose: false,
            pieces: MOST_PIECES,
        };
        change.slots_lose = change.some_slot_loses();
        change.loses_below_1m() || change.loses_above()
    }
}

/// Two maps of one CPU, and the page types that go with them.
struct Change<'a> {
    before: Decoded<'a>,
    after: Decoded<'a>,
    pats: (Pat, Pat),
    rule: CombineRule,
    /// The PAT alone takes something away, so that memory counts whose MTRR type stays.
    slots_lose: bool,
    /// How many pieces may still be looked at.
    pieces: u32,
}

impl Change<'_> {
    /// The part the fixed ranges decide, if they do on one side.
    fn loses_below_1m(&mut self) -> bool {
        (self.before.fixed.is_some() || self.after.fixed.is_some())
            && FIXED_RANGES.iter().enumerate().any(|(n, range)| {
                let same = self.before.same_fixed(&self.after, n) && !self.slots_lose;
                !same && self.loses_in(range.base, range.base + 8 * range.step)
            })
    }

    /// The part the variable ranges and the default type decide.
    fn loses_above(&mut self) -> bool {
        let both_fixed = self.before.fixed.is_some() && self.after.fixed.is_some();
        let first = if both_fixed { FIXED_END } else { 0 };
        let whole = (first, self.before.bits.end());
        let (start, end) = if self.slots_lose || !self.before.same_default(&self.after) {
            whole
        } else {
            // Only where a range matches that the other side does not have can types differ.
            let mine = self.before.hull_without(&self.after);
            let theirs = self.after.hull_without(&self.before);
            (mine.0.min(theirs.0).max(first), mine.1.max(theirs.1))
        };
        self.loses_in(start, end)
    }

    /// Whether some address in `start..end` loses.
    fn loses_in(&mut self, start: u64, end: u64) -> bool {
        let mut addr = start;
        while addr < end {
            let Some(left) = self.pieces.checked_sub(1) else {
                return true;
            };
            self.pieces = left;
            let (before, after) = (self.before.at(addr), self.after.at(addr));
            if self.types_lose(before, after) || self.rerouted(addr, before) {
                return true;
            }
            let next = self.before.next_change(addr);
            addr = next.min(self.after.next_change(addr));
        }
        false
    }

    /// Whether memory that goes from one MTRR type to another loses: as it is, or through a slot.
    fn types_lose(&self, before: MtrrType, after: MtrrType) -> bool {
        // What is undefined may have been WB, and may be UC now.
        let before = before.defined().unwrap_or(MemType::WriteBack);
        let after = after.forced();
        let through = |slot| {
            let found = self.pats.0.slot(slot).unwrap_or(PatType::WriteBack);
            let given = self.pats.1.slot(slot).unwrap_or(PatType::Uncachable);
            let page = |mtrr: MemType, pat| Effective::combine(mtrr.into(), pat, self.rule).page;
            takes_away(page(before, found), page(after, given))
        };
        let never_cached = !PageType::from(before).is_cacheable();
        !never_cached && (takes_away(before.into(), after.into()) || (0..8).any(through))
    }

    fn some_slot_loses(&self) -> bool {
        let stays = |mtrr: MemType| self.types_lose(mtrr.into(), mtrr.into());
        let cacheable = [
            MemType::WriteBack,
            MemType::WriteThrough,
            MemType::WriteProtected,
        ];
        self.pats.0 != self.pats.1 && cacheable.into_iter().any(stays)
    }

    /// Whether accesses below 1 MiB that could hit a cache go to another place from now on: AMD's
    /// RdMem or WrMem changes.
    fn rerouted(&self, addr: u64, before: MtrrType) -> bool {
        let dram_bits = |decoded: &Decoded<'_>| decoded.dram_bits_at(addr);
        let (found, given) = (dram_bits(&self.before), dram_bits(&self.after));
        let cacheable = before
            .defined()
            .is_none_or(|memtype| PageType::from(memtype).is_cacheable());
        cacheable && found.is_some() && given.is_some() && found != given
    }
}

/// The rule, for one line of memory.
const fn takes_away(before: PageType, after: PageType) -> bool {
    match before {
        PageType::WriteBack => !matches!(after, PageType::WriteBack),
        PageType::WriteThrough | PageType::WriteProtected => !after.is_cacheable(),
        PageType::Uncachable | PageType::CacheDisabled | PageType::WriteCombining => false,
    }
}

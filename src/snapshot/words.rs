//! A snapshot as plain words, for shared memory.

use super::Snapshot;
use crate::pat::Pat;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MtrrCap, MtrrDefType, SysCfg};

/// Words a [`Snapshot`] takes in shared memory.
pub(crate) const SNAPSHOT_WORDS: usize = 6 + FIXED_COUNT + 2 * MAX_VARIABLE;

/// Bits of the word that says which parts of a snapshot exist.
const HAS_CAP: u64 = 1;
const HAS_PAT: u64 = 2;
const HAS_SYSCFG: u64 = 4;
const DRAM_BITS: u64 = 8;

/// The words before those of the ranges.
pub(crate) struct Head {
    pub(crate) cap: Option<MtrrCap>,
    pub(crate) def_type: MtrrDefType,
    pub(crate) pat: Option<Pat>,
    pub(crate) syscfg: Option<SysCfg>,
    pub(crate) fixed_dram_bits: bool,
    pub(crate) top_mem2: u64,
}

impl Head {
    /// Takes them off the front; the fixed ranges come next, then base and mask of each pair.
    pub(crate) fn take(words: &mut impl Iterator<Item = u64>) -> Self {
        let mut next = || words.next().unwrap_or(0);
        let parts = next();
        let has = |bit: u64, raw: u64| (parts & bit != 0).then_some(raw);
        Self {
            cap: has(HAS_CAP, next()).map(MtrrCap::from_raw),
            def_type: MtrrDefType::from_raw(next()),
            pat: has(HAS_PAT, next()).map(Pat::from_raw),
            syscfg: has(HAS_SYSCFG, next()).map(SysCfg::from_raw),
            fixed_dram_bits: parts & DRAM_BITS != 0,
            top_mem2: next(),
        }
    }
}

impl Snapshot {
    /// The words, in a fixed order.
    pub(crate) fn to_words(self) -> [u64; SNAPSHOT_WORDS] {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let parts = flag(self.cap.is_some(), HAS_CAP)
            | flag(self.pat.is_some(), HAS_PAT)
            | flag(self.syscfg.is_some(), HAS_SYSCFG)
            | flag(self.fixed_dram_bits, DRAM_BITS);
        let head = [
            parts,
            self.cap.map_or(0, MtrrCap::raw),
            self.def_type.raw(),
            self.pat.map_or(0, Pat::raw),
            self.syscfg.map_or(0, SysCfg::raw),
            self.top_mem2,
        ];
        let pairs = self.variable.iter().flat_map(|pair| [pair.base, pair.mask]);
        let all = head.into_iter().chain(self.fixed).chain(pairs);
        let mut words = [0; SNAPSHOT_WORDS];
        for (word, value) in words.iter_mut().zip(all) {
            *word = value;
        }
        words
    }

    /// What [`Snapshot::to_words`] took apart, in place, over an empty one or one that was filled
    /// like this before. Words of pairs that do not exist are not taken: who runs uncached pays for
    /// each.
    pub(crate) fn fill_from(&mut self, mut words: impl Iterator<Item = u64>) {
        let head = Head::take(&mut words);
        self.cap = head.cap;
        self.def_type = head.def_type;
        self.pat = head.pat;
        self.syscfg = head.syscfg;
        self.fixed_dram_bits = head.fixed_dram_bits;
        self.top_mem2 = head.top_mem2;
        let mut next = || words.next().unwrap_or(0);
        for word in &mut self.fixed {
            *word = next();
        }
        let pairs = self.variable_count();
        for pair in self.variable.iter_mut().take(pairs) {
            pair.base = next();
            pair.mask = next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::PhysBits;

    #[test]
    fn what_was_taken_apart_is_put_together() {
        let bits = PhysBits::new(39).unwrap();
        let mut full = Snapshot::empty(bits);
        full.cap = Some(MtrrCap::from_raw(0xd28));
        full.pat = Some(Pat::POWER_ON);
        full.syscfg = Some(SysCfg::from_raw(1 << 20));
        full.def_type = MtrrDefType::from_raw(0xc06);
        full.fixed_dram_bits = true;
        full.top_mem2 = 5 << 32;
        full.fixed = core::array::from_fn(|n| n as u64 + 1);
        for (n, pair) in full.variable.iter_mut().enumerate() {
            (pair.base, pair.mask) = (n as u64 + 100, n as u64 + 200);
        }
        let mut bare = full;
        (bare.cap, bare.pat, bare.syscfg, bare.fixed_dram_bits) = (None, None, None, false);
        let mut copy = Snapshot::empty(bits);
        for from in [full, bare, full] {
            copy.fill_from(from.to_words().into_iter());
            assert_eq!(copy, from);
        }
    }
}

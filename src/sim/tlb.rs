//! The translations a simulated CPU holds, and the memory types they were filled with.

use std::collections::BTreeMap;

use crate::cpu::CR4_PCIDE;
use crate::memtype::PatType;

/// What a TLB entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) held: PatType,
    pub(crate) slot: u8,
    pub(crate) global: bool,
    pub(crate) pcid: u64,
}

/// The translations one logical processor holds, with the types they had when they were filled.
/// Never evicts: the worst case for staleness.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tlb {
    pub(crate) entries: BTreeMap<u64, Entry>,
}

impl Tlb {
    /// Everything, global entries too.
    pub(crate) fn flush_all(&mut self) {
        self.entries.clear();
    }

    /// What MOV to CR3 flushes: non-global entries of one address space.
    pub(crate) fn flush_space(&mut self, pcid: u64) {
        self.entries
            .retain(|_, entry| entry.global || entry.pcid != pcid);
    }
}

/// The address space CR3 names.
pub(crate) const fn pcid(cr3: u64, cr4: u64) -> u64 {
    if cr4 & CR4_PCIDE == 0 { 0 } else { cr3 & 0xfff }
}

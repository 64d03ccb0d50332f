//! The memory type an access gets on a simulated CPU, and the TLB that remembers it.
//!
//! Written from the manuals and apart from the crate's own lookup, so that the two check each
//! other.

use std::collections::BTreeMap;

use super::config::Vendor;
use super::registers::{MtrrSet, ThreadRegs};
use crate::cpu::CR4_PCIDE;
use crate::memtype::{MemType, PatType};
use crate::ranges::{FIXED_END, FIXED_RANGES};
use crate::regs::{MtrrCap, MtrrDefType, SysCfg};

/// The type the MTRRs give an address. An undefined mix counts as UC. Without MTRRs, WB.
pub(crate) fn mtrr_type(regs: &ThreadRegs, set: &MtrrSet, address: u64) -> MemType {
    let Some(cap) = regs.cap else {
        return MemType::WriteBack;
    };
    if !set.enabled() {
        return MemType::Uncachable;
    }
    if address < FIXED_END && cap.contains(MtrrCap::FIX) && set.def_type & MtrrDefType::FE != 0 {
        return fixed_type(set, address);
    }
    let mut found: Option<MemType> = None;
    for pair in set.variable.iter().take(usize::from(cap.vcnt())) {
        if pair.valid() && pair.matches(address, regs.phys_bits) {
            let this = pair.memtype().unwrap_or(MemType::Uncachable);
            found = Some(found.map_or(this, |before| overlap(before, this)));
        }
    }
    found.unwrap_or_else(|| default_type(regs, set, address))
}

fn fixed_type(set: &MtrrSet, address: u64) -> MemType {
    for (range, word) in FIXED_RANGES.iter().zip(set.fixed) {
        if (range.base..range.base + 8 * range.step).contains(&address) {
            let byte = word >> (8 * ((address - range.base) / range.step));
            return MemType::from_field(byte as u8 & 7).unwrap_or(MemType::Uncachable);
        }
    }
    MemType::Uncachable
}

fn overlap(a: MemType, b: MemType) -> MemType {
    use MemType::{Uncachable, WriteBack, WriteThrough};
    match (a, b) {
        _ if a == b => a,
        (WriteThrough, WriteBack) | (WriteBack, WriteThrough) => WriteThrough,
        _ => Uncachable,
    }
}

fn default_type(regs: &ThreadRegs, set: &MtrrSet, address: u64) -> MemType {
    let forced = regs.syscfg.is_some_and(|syscfg| {
        syscfg.contains(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB)
            && (1 << 32..regs.top_mem2).contains(&address)
    });
    if forced {
        MemType::WriteBack
    } else {
        MtrrDefType::from_raw(set.def_type)
            .memtype()
            .unwrap_or(MemType::Uncachable)
    }
}

/// The type MTRR and PAT give together. AMD's CD type counts as UC here.
fn combined(vendor: Vendor, mtrr: MemType, pat: PatType) -> PatType {
    use PatType::{
        Uncachable, UncachedMinus, WriteBack, WriteCombining, WriteProtected, WriteThrough,
    };
    let row = match (mtrr, pat) {
        (_, WriteCombining) => return WriteCombining,
        (_, Uncachable) => return Uncachable,
        (MemType::Uncachable, _) => return Uncachable,
        (MemType::WriteCombining, WriteBack | UncachedMinus) => return WriteCombining,
        (MemType::WriteCombining, _) => return Uncachable,
        (MemType::WriteBack, UncachedMinus) => return Uncachable,
        (MemType::WriteBack, other) => return other,
        (row, _) => row,
    };
    let through = row == MemType::WriteThrough;
    match (vendor, pat) {
        (_, WriteBack) => row.into(),
        (_, WriteThrough) if through => WriteThrough,
        (_, WriteProtected) if !through => WriteProtected,
        (Vendor::Intel, WriteThrough) => WriteThrough,
        (Vendor::Intel, WriteProtected) => WriteProtected,
        (Vendor::Intel, UncachedMinus) if !through => WriteCombining,
        _ => Uncachable,
    }
}

/// The type an access through a PAT slot gets from what the registers now hold.
pub(crate) fn effective_type(
    vendor: Vendor,
    regs: &ThreadRegs,
    set: &MtrrSet,
    address: u64,
    slot: u8,
) -> PatType {
    let pat = crate::pat::Pat::from_raw(regs.pat.unwrap_or(crate::pat::Pat::POWER_ON.raw()));
    let pat = pat.slot(slot).unwrap_or(PatType::Uncachable);
    combined(vendor, mtrr_type(regs, set, address), pat)
}

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

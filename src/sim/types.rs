//! The memory type an access gets on a simulated CPU.
//!
//! Written from the manuals and apart from the crate's own lookup, so that the two check each
//! other.

use super::config::Vendor;
use super::registers::{MtrrSet, ThreadRegs};
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as the manuals' tables have them; columns UC WC WT WP WB UC-.
    fn rows(vendor: Vendor) -> [String; 5] {
        let columns = [
            PatType::Uncachable,
            PatType::WriteCombining,
            PatType::WriteThrough,
            PatType::WriteProtected,
            PatType::WriteBack,
            PatType::UncachedMinus,
        ];
        MemType::ALL.map(|mtrr| {
            let row: Vec<_> = columns
                .iter()
                .map(|pat| combined(vendor, mtrr, *pat).short())
                .collect();
            row.join(" ")
        })
    }

    #[test]
    fn mtrr_and_pat_combine_as_the_manuals_say() {
        assert_eq!(
            rows(Vendor::Intel),
            [
                "UC WC UC UC UC UC",
                "UC WC UC UC WC WC",
                "UC WC WT WP WT UC",
                "UC WC WT WP WP WC",
                "UC WC WT WP WB UC",
            ]
        );
        // The CD type of the APM counts as UC.
        assert_eq!(
            rows(Vendor::Amd),
            [
                "UC WC UC UC UC UC",
                "UC WC UC UC WC WC",
                "UC WC WT UC WT UC",
                "UC WC UC WP WP UC",
                "UC WC WT WP WB UC",
            ]
        );
    }

    #[test]
    fn ranges_overlap_and_default() {
        use crate::regs::VariableMtrr;
        let config = std::sync::Arc::new(super::super::config::Config::amd(1, 1));
        let state = super::super::state::State::new(config);
        let (mut regs, mut set) = (state.cpus[0].regs.clone(), state.sets[0]);
        let at = |regs: &ThreadRegs, set: &MtrrSet, address| mtrr_type(regs, set, address).short();
        assert_eq!(at(&regs, &set, 0x1000), "WB");
        assert_eq!(at(&regs, &set, 0xa_0000), "UC");
        assert_eq!(at(&regs, &set, 0x8000_0000), "UC");
        assert_eq!(at(&regs, &set, 0x2_3fff_ffff), "WB");
        assert_eq!(at(&regs, &set, 0x2_4000_0000), "UC");
        // Only the forced default covers this byte once the third range is gone.
        set.variable[2] = VariableMtrr::default();
        assert_eq!(at(&regs, &set, 0x2_3fff_ffff), "WB");
        regs.top_mem2 = 0;
        assert_eq!(at(&regs, &set, 0x2_3fff_ffff), "UC");
        let block =
            |memtype| VariableMtrr::from_block(0x10_0000, 0x1000, memtype, regs.phys_bits).unwrap();
        for (memtype, short) in [
            (MemType::WriteThrough, "WT"),
            (MemType::WriteCombining, "UC"),
            (MemType::Uncachable, "UC"),
            (MemType::WriteBack, "WB"),
        ] {
            set.variable[5] = block(memtype);
            assert_eq!(at(&regs, &set, 0x10_0fff), short);
        }
        set.def_type &= !MtrrDefType::FE;
        assert_eq!(at(&regs, &set, 0xa_0000), "WB");
        set.def_type = 0x406;
        assert_eq!(at(&regs, &set, 0x1000), "UC");
        regs.cap = None;
        assert_eq!(at(&regs, &set, 0x1000), "WB");
    }
}

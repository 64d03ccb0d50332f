//! Names people and programs give the registers.

use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr};

use super::words;

/// The register a name stands for, and how many atoms after the name belong to it.
pub fn register_named(atom: &str, next: &str) -> Option<(u32, usize)> {
    let upper: String = atom
        .chars()
        .take(32)
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_uppercase())
        .collect();
    let name = upper.trim_start_matches("MSR").trim_start_matches("IA32");
    let name = name.trim_start_matches("AMD64").trim_start_matches("AMD");
    let name = name.trim_start_matches("MSR").trim_start_matches("MTRR");
    let plain = match name {
        "CAP" => MsrAddr::MTRRCAP.0,
        "DEFTYPE" => MsrAddr::MTRR_DEF_TYPE.0,
        // "PAT" alone is a word like any other, unless a register's worth of digits follows.
        "PAT" if upper == "PAT" => {
            return (next.starts_with("0x") && words::hex(next).is_some())
                .then_some((MsrAddr::PAT.0, 0));
        }
        "PAT" | "CRPAT" => MsrAddr::PAT.0,
        "SYSCFG" | "SYSCFGMSR" => MsrAddr::SYSCFG.0,
        "TOPMEM2" | "TOM2" => MsrAddr::TOP_MEM2.0,
        "TOPMEM" => MsrAddr::TOP_MEM.0,
        "IORRBASE0" => MsrAddr::iorr_base(0).0,
        "IORRMASK0" => MsrAddr::iorr_mask(0).0,
        "IORRBASE1" => MsrAddr::iorr_base(1).0,
        "IORRMASK1" => MsrAddr::iorr_mask(1).0,
        "TMEACTIVATE" => MsrAddr::TME_ACTIVATE.0,
        _ => return range_named(name, next),
    };
    // "CAP" and the like alone are ordinary words.
    (upper.len() > 3).then_some((plain, 0))
}

/// `PHYSBASE0`, `PHYSMASK` followed by an index, `FIX4KC8000`.
fn range_named(name: &str, next: &str) -> Option<(u32, usize)> {
    for (prefix, half) in [
        ("PHYSBASE", 0),
        ("PHYSMASK", 1),
        ("PHYBASE", 0),
        ("PHYMASK", 1),
    ] {
        if let Some(digits) = name.strip_prefix(prefix) {
            let (digits, extra) = if digits.is_empty() {
                (next, 1)
            } else {
                (digits, 0)
            };
            let index: usize = digits.parse().ok()?;
            let base = MsrAddr::phys_base(index.min(MAX_VARIABLE)).0;
            return (index < MAX_VARIABLE).then_some((base + half, extra));
        }
    }
    let rest = name
        .strip_prefix("FIXED")
        .or_else(|| name.strip_prefix("FIX"))?;
    let (kind, address) = rest.split_once('K')?;
    let step = kind.parse::<u64>().ok()? << 10;
    let address = words::hex(address)?;
    (0..FIXED_COUNT)
        .filter_map(|index| FIXED_RANGES.get(index))
        .find(|range| range.step == step && range.base == address)
        .map(|range| (range.msr.0, 0))
}

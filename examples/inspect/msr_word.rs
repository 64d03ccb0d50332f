//! One register of what is known of a CPU, by its number.

use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::MsrAddr;

use super::read_msr::IORRS;
use super::regs::{Fixed, Regs, Variable};

/// Drops what `regs` says of register `msr`, one of ours.
pub fn forget(regs: &mut Regs, msr: u32) {
    match MsrAddr(msr) {
        MsrAddr::MTRRCAP => regs.cap = None,
        MsrAddr::MTRR_DEF_TYPE => {
            (regs.default, regs.enabled, regs.fixed_enabled) = (None, None, None);
        }
        MsrAddr::PAT => regs.pat = None,
        MsrAddr::SYSCFG => regs.syscfg = None,
        MsrAddr::TOP_MEM2 => regs.top_mem2 = None,
        MsrAddr::TOP_MEM => regs.top_mem = None,
        MsrAddr::TME_ACTIVATE => regs.tme_activate = None,
        _ if IORRS.contains(&msr) => {
            let place = msr - IORRS.start;
            if let Some((base, mask)) = regs.iorr.get_mut(place as usize / 2) {
                *if place & 1 == 1 { mask } else { base } = None;
            }
        }
        _ if (0x200..0x250).contains(&msr) => regs.forget_variable_word(msr - 0x200),
        _ => {
            let index = FIXED_RANGES.iter().position(|range| range.msr.0 == msr);
            if let Some(fixed) = index.and_then(|index| regs.fixed.get_mut(index)) {
                *fixed = Fixed::default();
            }
        }
    }
}

/// The word of register `msr`, one of ours, as far as `regs` has it.
pub fn word(regs: &Regs, msr: u32) -> Option<u64> {
    match MsrAddr(msr) {
        MsrAddr::MTRRCAP => regs.cap,
        MsrAddr::MTRR_DEF_TYPE => {
            let bit = |flag: Option<bool>, at: u32| flag.map(|flag| u64::from(flag) << at);
            let enables = bit(regs.enabled, 11)? | bit(regs.fixed_enabled, 10)?;
            Some(u64::from(regs.default?) | enables)
        }
        MsrAddr::PAT => regs.pat,
        MsrAddr::SYSCFG => regs.syscfg,
        MsrAddr::TOP_MEM2 => regs.top_mem2,
        MsrAddr::TOP_MEM => regs.top_mem,
        MsrAddr::TME_ACTIVATE => regs.tme_activate,
        _ if IORRS.contains(&msr) => {
            let place = msr - IORRS.start;
            let (base, mask) = regs.iorr.get(place as usize / 2)?;
            *if place & 1 == 1 { mask } else { base }
        }
        _ if (0x200..0x250).contains(&msr) => {
            let index = ((msr - 0x200) / 2) as u8;
            match regs.variable.get(&index)? {
                Variable::Words { base, mask } => *if msr & 1 == 1 { mask } else { base },
                _ => None,
            }
        }
        _ => {
            let index = FIXED_RANGES.iter().position(|range| range.msr.0 == msr)?;
            let fixed = regs.fixed.get(index)?;
            (fixed.known == 0xff).then_some(fixed.word)
        }
    }
}

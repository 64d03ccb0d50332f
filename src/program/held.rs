//! Whether this CPU holds the target already, register by register and without a copy of either.
//!
//! Owns the quick answer only: whatever is not plainly equal is left to [`super::Plan`], which says
//! what differs and why a register could not be read.

use crate::cpu::CpuOps;
use crate::delta::routing_bits;
use crate::platform::Platform;
use crate::policy::{AmdFixed, Policy};
use crate::ranges::FIXED_RANGES;
use crate::regs::{MsrAddr, SysCfg};
use crate::snapshot::Head;

/// Whether every register [`super::Plan::look`] compares on a CPU's first arrival holds what the
/// `words` of a target say. Only reads, each register once, and stops at the first that does not: after
/// S3 that is DEF_TYPE. Interrupts as they are.
pub(crate) fn holds(
    cpu: &mut impl CpuOps,
    mut words: impl Iterator<Item = u64>,
    platform: &Platform,
    policy: &Policy,
) -> bool {
    if platform.amd && policy.amd_fixed == AmdFixed::SaveDramBits {
        // Reading RdMem and WrMem means writing SYSCFG.
        return false;
    }
    let head = Head::take(&mut words);
    let mut is = |msr: MsrAddr, value: u64| cpu.rdmsr(msr) == Ok(value);
    let def_type = head.def_type.raw();
    let same = head
        .cap
        .is_none_or(|cap| is(MsrAddr::MTRRCAP, cap.raw()) && is(MsrAddr::MTRR_DEF_TYPE, def_type))
        && head.pat.is_none_or(|pat| is(MsrAddr::PAT, pat.raw()))
        && head.syscfg.is_none_or(|syscfg| {
            same_routing(cpu, syscfg)
                && (!syscfg.contains(SysCfg::MTRR_TOM2_EN)
                    || cpu.rdmsr(MsrAddr::TOP_MEM2) == Ok(head.top_mem2))
        });
    if !same {
        return false;
    }
    let mut next = || words.next().unwrap_or(0);
    for range in &FIXED_RANGES {
        let word = next();
        if platform.has_fixed() && cpu.rdmsr(range.msr) != Ok(word) {
            return false;
        }
    }
    (0..platform.variable_count()).all(|n| {
        cpu.rdmsr(MsrAddr::phys_base(n)) == Ok(next())
            && cpu.rdmsr(MsrAddr::phys_mask(n)) == Ok(next())
    })
}

fn same_routing(cpu: &mut impl CpuOps, wanted: SysCfg) -> bool {
    let here = cpu.rdmsr(MsrAddr::SYSCFG).map(SysCfg::from_raw);
    here.is_ok_and(|here| routing_bits(here) == routing_bits(wanted))
}

#[cfg(all(test, feature = "sim", not(loom)))]
mod tests;

//! Back to the old map, whole, or MTRRs off.
//!
//! Owns what happens after a write failed inside the window; refuses to know why it did.

use super::Plan;
use crate::cpu::CpuOps;
use crate::delta::{Delta, Write};
use crate::error::Left;
use crate::platform::Platform;
use crate::policy::Policy;
use crate::regs::{MsrAddr, MtrrDefType};
use crate::snapshot::Snapshot;

/// Puts back what every register of the plan held before; if one refuses, or one outside the plan
/// was changed behind our back meanwhile, leaves E clear.
pub(super) fn roll_back(
    cpu: &mut impl CpuOps,
    plan: &Plan,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
    disable: Write,
) -> Left {
    // E may have been set again before a mismatch was seen.
    turn_off(cpu, disable);
    let pat = plan.delta.pat();
    for write in plan.delta.window().iter().chain(&pat) {
        // The register that faulted still holds its old value: it is not written again.
        if cpu.rdmsr(write.msr) != Ok(write.before) {
            // Whether it worked is seen below.
            let _ = cpu.wrmsr(write.msr, write.before);
        }
    }
    let enable = disable.before;
    if differs_as_before(cpu, &plan.delta, want, platform, policy)
        && cpu.wrmsr(disable.msr, enable).is_ok()
        && cpu.rdmsr(disable.msr) == Ok(enable)
    {
        return Left::RolledBack;
    }
    turn_off(cpu, disable);
    Left::Torn
}

/// Whether this CPU, but for DEF_TYPE, differs from `want` in exactly what it did when the plan was
/// made: then it holds the old map whole.
fn differs_as_before(
    cpu: &mut impl CpuOps,
    before: &Delta,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
) -> bool {
    let now = Snapshot::capture(cpu, platform, policy.amd_fixed)
        .and_then(|have| Delta::between(&have, want));
    now.is_ok_and(|now| now.window() == before.window() && now.pat() == before.pat())
}

/// Clears E, more than once if a write is ignored.
fn turn_off(cpu: &mut impl CpuOps, disable: Write) {
    const ATTEMPTS: u32 = 3;
    for _ in 0..ATTEMPTS {
        // Seen on reading back, whatever it returns.
        let _ = cpu.wrmsr(disable.msr, disable.value);
        if is_off(cpu) {
            return;
        }
    }
}

/// Whether E is clear.
pub(super) fn is_off(cpu: &mut impl CpuOps) -> bool {
    cpu.rdmsr(MsrAddr::MTRR_DEF_TYPE)
        .is_ok_and(|raw| !MtrrDefType::from_raw(raw).enabled())
}

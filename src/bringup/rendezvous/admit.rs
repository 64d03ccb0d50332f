//! A CPU is about to be started: neither a meeting nor a sibling's window may be open then.

use super::Gate;
use super::declared::Declared;
use super::hold::Core;
use super::slot::{CpuState, Deadline, Slot};
use crate::atomic::full_fence;
use crate::cpu::CpuOps;
use crate::policy::Bounds;

/// Why a CPU may not be started. It stays absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    /// A meeting is open that may not have counted it.
    Meeting,
    /// A sibling stays in a window it may have opened without asking it.
    Sibling(usize),
}

/// Declares the CPU of `slot` and `core` starting; waits, bounded, for a sibling's window to end.
///
/// # Errors
/// [`Barred`]; the CPU is absent then.
pub(crate) fn admit(
    gate: &Gate,
    declared: &Declared,
    core: Core<'_>,
    slot: &Slot,
    cpu: &mut impl CpuOps,
    bounds: &Bounds,
) -> Result<(), Barred> {
    let deadline = Deadline::after(cpu, bounds.finish);
    loop {
        let last = deadline.passed(cpu);
        slot.set_state(cpu, CpuState::Starting);
        // Partners: the fence after Gather, and the one after a sibling's Entered.
        full_fence();
        if gate.open() {
            // Not waited for here: the caller may itself be wanted there.
            slot.set_state(cpu, CpuState::Absent);
            return Err(Barred::Meeting);
        }
        let Some(sibling) = core.sibling_entered(cpu, declared) else {
            return Ok(());
        };
        slot.set_state(cpu, CpuState::Absent);
        if last {
            return Err(Barred::Sibling(sibling));
        }
        deadline.pause_briefly(cpu, &slot.handshake.summon, slot.summoned());
    }
}

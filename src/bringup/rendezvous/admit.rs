//! A CPU is about to be started: neither a rendezvous nor a sibling's window may be open then.

use super::Gate;
use super::deadline::Deadline;
use super::peers::Peers;
use super::slot::CpuState;
use crate::cpu::CpuOps;

/// Why a CPU may not be started. It stays absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    /// A rendezvous is open that may not have counted it.
    Rendezvous,
    /// A sibling stays in a window it may have opened without asking it.
    Sibling(usize),
}

/// Declares the CPU `peers` is about starting; waits, bounded, for a sibling's window to end.
///
/// # Errors
/// [`Barred`]; the CPU is absent then.
pub(crate) fn admit(gate: &Gate, peers: Peers<'_>, cpu: &mut impl CpuOps) -> Result<(), Barred> {
    let Some(slot) = peers.mine() else {
        return Ok(());
    };
    let deadline = Deadline::after(cpu, peers.bounds.finish);
    loop {
        let last = deadline.passed(cpu);
        slot.set_state(CpuState::Starting);
        // Partners: the fence after Gather, and the one after a sibling's Entered.
        cpu.mfence();
        if gate.open() {
            // Not waited for here: the caller may itself be wanted there.
            slot.set_state(CpuState::Absent);
            return Err(Barred::Rendezvous);
        }
        let Some(sibling) = peers.sibling_entered() else {
            return Ok(());
        };
        slot.set_state(CpuState::Absent);
        if last {
            return Err(Barred::Sibling(sibling));
        }
        deadline.pause_briefly(cpu, &slot.handshake.summon, slot.summoned());
    }
}

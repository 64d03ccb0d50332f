//! A CPU is about to be started: neither a rendezvous nor a sibling's window may be open then.

use super::Gate;
use super::deadline::Deadline;
use super::peers::Peers;
use super::slot::CpuState;
use crate::cpu::CpuOps;
use crate::error::Error;

/// Declares the CPU `peers` is about starting; waits, bounded, for a sibling's window to end.
///
/// # Errors
/// [`Error::Busy`]: a rendezvous is open that may not have counted it. [`Error::SiblingStuck`]: one stays in
/// a window it may have opened without asking it. The CPU is absent then.
pub(crate) fn admit(gate: &Gate, peers: Peers<'_>, cpu: &mut impl CpuOps) -> Result<(), Error> {
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
            return Err(Error::Busy);
        }
        let Some(sibling) = peers.sibling_entered() else {
            return Ok(());
        };
        slot.set_state(CpuState::Absent);
        if last {
            return Err(Error::SiblingStuck { cpu: sibling });
        }
        deadline.pause_briefly(cpu, &slot.handshake.summon, slot.summoned());
    }
}

//! One thread of a core asks the others to stand still while it has the caches off.
//!
//! Requested -> (every sibling acknowledges) -> Entered -> Released. Before Entered the requester
//! may give up, and a held sibling may leave if the requester fell silent; each first says so, then
//! looks again whether the other moved, so that at most one of them gets its way. After Entered the
//! requester leaves only through the end of its window.
//!
//! Two threads that ask at once: the one with the lower CPU number goes first.

use super::deadline::Deadline;
use super::peers::Peers;
use super::slot::{REQUEST_PHASE as PHASE, Slot};
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;
use crate::error::Error;
use crate::program::{flush_tlb, masked};

const IDLE: u32 = 0;
const REQUESTED: u32 = 1;
const ENTERED: u32 = 2;
const ONE: u32 = 4;

/// Bits of an acknowledgement that hold the requester's number plus one.
const WHO_BITS: u32 = 16;

/// The acknowledgement of `who`'s request in its present round.
const fn ack_of(who: usize, request: u32) -> u32 {
    (request / ONE) << WHO_BITS | (who as u32 + 1)
}

fn request_of(slot: &Slot) -> u32 {
    slot.handshake.request.load(Ordering::Acquire)
}

impl<'a> Peers<'a> {
    /// The lowest-numbered sibling that asks this CPU to stand still, and its request.
    fn asking(self, below: usize) -> Option<(usize, u32)> {
        self.siblings()
            .filter(|(number, _)| *number < below)
            .map(|(number, slot)| (number, request_of(slot)))
            .filter(|(_, request)| request & PHASE != IDLE)
            .min()
    }

    /// Whether a sibling asks this CPU to stand still.
    pub(crate) fn is_asked(self) -> bool {
        self.asking(usize::MAX).is_some()
    }

    /// Whether a sibling waits for this CPU's answer.
    pub(crate) fn is_awaited(self) -> bool {
        let ack = self
            .mine()
            .map(|slot| slot.handshake.ack.load(Ordering::Acquire));
        let asked = self.asking(usize::MAX);
        asked.is_some_and(|(who, request)| {
            request & PHASE == REQUESTED && ack != Some(ack_of(who, request))
        })
    }

    /// Whether some sibling is inside a window it was let into.
    pub(crate) fn sibling_entered(self) -> Option<usize> {
        let entered = |(number, slot)| (request_of(slot) & PHASE == ENTERED).then_some(number);
        self.siblings().find_map(entered)
    }

    /// Stands still for as long as a sibling asks. Returns at once when none does.
    ///
    /// # Errors
    /// [`Error::SiblingStuck`]: this CPU stood still as long as it may; that sibling never came out of
    /// its window.
    pub(crate) fn hold_point(self, cpu: &mut impl CpuOps) -> Result<(), Error> {
        self.hold_for(cpu, usize::MAX)
    }

    /// [`Peers::hold_point`] for siblings with numbers below this: for one that is asking itself.
    fn hold_for(self, cpu: &mut impl CpuOps, below: usize) -> Result<(), Error> {
        if self.asking(below).is_none() {
            return Ok(());
        }
        masked(cpu, |cpu| self.stand_still(cpu, below))
    }

    fn stand_still(self, cpu: &mut impl CpuOps, below: usize) -> Result<(), Error> {
        let Some(me) = self.mine() else {
            return Ok(());
        };
        let ack = &me.handshake.ack;
        let since = cpu.rdtsc();
        // Longer than the requester itself waits: past it, the requester has fallen silent.
        let silent = Deadline::after(cpu, self.bounds.hold.saturating_mul(4));
        let stuck = Deadline::after(cpu, self.bounds.finish);
        let mut held = Ok(());
        let mut acked = 0;
        loop {
            let (tired, last) = (silent.passed(cpu), stuck.passed(cpu));
            let Some((number, request)) = self.obey(cpu, ack, below, &mut acked) else {
                break;
            };
            flush_tlb(cpu);
            if request & PHASE == ENTERED && last {
                held = Err(Error::SiblingStuck { cpu: number });
                break;
            }
            if request & PHASE == REQUESTED && tired && self.withdraw(cpu, ack, &mut acked) {
                break;
            }
            if let Some(slot) = self.slots.get(number) {
                stuck.pause_briefly(cpu, &slot.handshake.request, request);
            }
        }
        // Before the acknowledgement is taken back: no other window opens meanwhile. What was translated
        // while it stood still goes too: its sibling has counted the window before it opened it.
        let _ = self.flush_after_siblings(cpu, held.is_ok());
        ack.store(0, Ordering::Release);
        let ticks = cpu.rdtsc().saturating_sub(since);
        let (sum, times) = (&me.record.held, &me.record.holds);
        let all = sum.load(Ordering::Relaxed).saturating_add(ticks);
        sum.store(all, Ordering::Relaxed);
        times.store(
            times.load(Ordering::Relaxed).saturating_add(1),
            Ordering::Relaxed,
        );
        held
    }

    /// Whom this CPU stands still for in this round: whoever entered on its word, else the
    /// lowest-numbered sibling that asks, which then has its acknowledgement.
    fn obey(
        self,
        cpu: &mut impl CpuOps,
        ack: &Word,
        below: usize,
        acked: &mut u32,
    ) -> Option<(usize, u32)> {
        let (number, request) = self.asking(below)?;
        let wanted = ack_of(number, request);
        if request & PHASE != REQUESTED || *acked == wanted {
            return Some((number, request));
        }
        let entered = self.acked_request(*acked);
        if !self.withdraw(cpu, ack, acked) {
            return entered;
        }
        ack.store(wanted, Ordering::Release);
        *acked = wanted;
        Some((number, request))
    }

    /// The CPU an acknowledgement names, and that CPU's request now.
    fn acked_request(self, acked: u32) -> Option<(usize, u32)> {
        let who = (acked & ((1 << WHO_BITS) - 1)).checked_sub(1)? as usize;
        Some((who, request_of(self.slots.get(who)?)))
    }

    /// Takes back the acknowledgement; fails, leaving it in place, if its requester has entered.
    fn withdraw(self, cpu: &mut impl CpuOps, ack: &Word, acked: &mut u32) -> bool {
        if *acked == 0 {
            return true;
        }
        ack.store(0, Ordering::Release);
        // Partner: the fence between the requester's Entered and its second look at our ack.
        cpu.mfence();
        let entered = self.acked_request(*acked).is_some_and(|(who, request)| {
            request & PHASE == ENTERED && ack_of(who, request) == *acked
        });
        if entered {
            ack.store(*acked, Ordering::Release);
            return false;
        }
        *acked = 0;
        true
    }

    /// Asks every sibling that may run to stand still, and returns when all do: this CPU may then open
    /// its window, and must [`Peers::leave`] afterwards. One that has not answered at half the bound
    /// is called again: an interrupt may get lost.
    ///
    /// # Errors
    /// [`Error::SiblingsNotHeld`] at the bound, [`Error::TopologyUnknown`]; nobody is held any more.
    pub(crate) fn enter(
        self,
        cpu: &mut impl CpuOps,
        mut kick: impl FnMut(usize),
    ) -> Result<(), Error> {
        let Some(me) = self.mine().map(|slot| &slot.handshake) else {
            return Ok(());
        };
        let round = (me.request.own() & !PHASE).wrapping_add(ONE);
        let requested = round | REQUESTED;
        let wanted = ack_of(self.me, requested);
        if self.declared.unplaced() {
            return Err(Error::TopologyUnknown);
        }
        me.request.store(requested, Ordering::Release);
        cpu.mfence();
        self.missing(wanted).for_each(|(number, ..)| kick(number));
        let again = Deadline::after(cpu, self.bounds.hold / 2);
        let deadline = Deadline::after(cpu, self.bounds.hold);
        let mut called_again = false;
        let refused = loop {
            let last = deadline.passed(cpu);
            let _ = self.hold_for(cpu, self.me);
            if let Some((number, slot, seen)) = self.missing(wanted).next() {
                if last {
                    break Error::SiblingsNotHeld { cpu: number };
                }
                if !called_again && again.passed(cpu) {
                    called_again = true;
                    self.missing(wanted).for_each(|(number, ..)| kick(number));
                }
                deadline.pause_briefly(cpu, &slot.handshake.ack, seen);
                continue;
            }
            me.request.store(round | ENTERED, Ordering::Release);
            // Partners: `withdraw` of a sibling that grew tired, `admit` of one that was absent.
            cpu.mfence();
            if self.declared.unplaced() {
                break Error::TopologyUnknown;
            }
            let Some((number, ..)) = self.missing(wanted).next() else {
                return Ok(());
            };
            if last {
                break Error::SiblingsNotHeld { cpu: number };
            }
            me.request.store(requested, Ordering::Release);
        };
        self.leave();
        Err(refused)
    }

    /// Siblings that may run and do not stand still for this request, and their answers so far.
    fn missing(self, wanted: u32) -> impl Iterator<Item = (usize, &'a Slot, u32)> {
        self.siblings().filter_map(move |(number, slot)| {
            let ack = slot.handshake.ack.load(Ordering::Acquire);
            (ack != wanted && slot.state().may_run()).then_some((number, slot, ack))
        })
    }

    /// Lets the siblings go after [`Peers::enter`] and the window.
    pub(crate) fn leave(self) {
        if let Some(me) = self.mine().map(|slot| &slot.handshake) {
            let round = me.request.own() & !PHASE;
            me.request.store(round | IDLE, Ordering::Release);
        }
    }
}

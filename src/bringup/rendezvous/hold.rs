//! One thread of a core asks the others to stand still while it has the caches off.
//!
//! Requested -> (every sibling acknowledges) -> Entered -> Released. Before Entered the requester
//! may give up, and a held sibling may leave if the requester fell silent; each first says so, then
//! looks again whether the other moved, so that at most one of them gets its way. After Entered the
//! requester leaves only through the end of its window.
//!
//! Two threads that ask at once: the one with the lower CPU number goes first.

use super::declared::Declared;
use super::slot::{Deadline, Slot, UNKNOWN_CORE, poll, publish};
use crate::atomic::{Ordering, full_fence};
use crate::cpu::CpuOps;
use crate::policy::Bounds;
use crate::program::{flush_tlb, masked};

const IDLE: u32 = 0;
const REQUESTED: u32 = 1;
const ENTERED: u32 = 2;
pub(super) const PHASE: u32 = 0b11;
const ONE: u32 = 4;

/// Bits of an acknowledgement that hold the requester's number plus one.
const WHO_BITS: u32 = 16;

/// The acknowledgement of `who`'s request in its present round.
const fn ack_of(who: usize, request: u32) -> u32 {
    (request / ONE) << WHO_BITS | (who as u32 + 1)
}

/// How being held ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nobody asked.
    No,
    /// Asked, and let go again.
    Released,
    /// This CPU stood still as long as it may; that sibling never came out of its window.
    SiblingStuck(usize),
}

/// Why a CPU may not open its window now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// This CPU has no slot.
    NoSlot,
    /// There is a CPU whose place is not known: it may be a sibling, and is not asked.
    Unplaced,
    /// This sibling did not answer in time; there may be more.
    NoAnswer(usize),
}

/// The threads of one core, as a ring of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core<'a> {
    slots: &'a [Slot],
    me: usize,
}

impl<'a> Core<'a> {
    pub(crate) const fn of(slots: &'a [Slot], me: usize) -> Self {
        Self { slots, me }
    }

    /// The other threads of this core, with their CPU numbers.
    pub(crate) fn siblings(self) -> impl Iterator<Item = (usize, &'a Slot)> {
        let mut at = self.me;
        // A ring cannot be longer than the table, whatever is in the links.
        let mut left = self.slots.len();
        core::iter::from_fn(move || {
            at = self.slots.get(at)?.handshake.next.load(Ordering::Acquire) as usize;
            left = left.checked_sub(1)?;
            (at != self.me).then_some((at, self.slots.get(at)?))
        })
    }

    /// Windows all siblings have opened so far.
    pub(crate) fn sibling_windows(self) -> u32 {
        self.siblings().fold(0, |sum, (_, slot)| {
            sum.wrapping_add(slot.handshake.windows.load(Ordering::Acquire))
        })
    }

    /// The lowest-numbered sibling that asks this CPU to stand still, and its request.
    fn asking(self, cpu: &mut impl CpuOps, below: usize) -> Option<(usize, u32)> {
        self.siblings()
            .filter(|(number, _)| *number < below)
            .map(|(number, slot)| (number, poll(cpu, &slot.handshake.request)))
            .filter(|(_, request)| request & PHASE != IDLE)
            .min()
    }

    /// Whether some sibling is inside a window it was let into; of a CPU whose place is not known any
    /// other may be one.
    pub(crate) fn sibling_entered(
        self,
        cpu: &mut impl CpuOps,
        declared: &Declared,
    ) -> Option<usize> {
        let mut entered = |(number, slot): (usize, &Slot)| {
            let request = poll(cpu, &slot.handshake.request);
            (number != self.me && request & PHASE == ENTERED).then_some(number)
        };
        let me = self.slots.get(self.me)?;
        if me.handshake.core.load(Ordering::Relaxed) == UNKNOWN_CORE {
            let mut all = declared.used(self.slots).iter().enumerate();
            all.find_map(entered)
        } else {
            self.siblings().find_map(&mut entered)
        }
    }
}

/// Stands still for as long as a sibling asks. Returns at once when none does.
///
/// `below` limits whose requests count: `usize::MAX` for all, this CPU's own number for one that
/// is asking itself.
pub(crate) fn hold_point(
    core: Core<'_>,
    cpu: &mut impl CpuOps,
    bounds: &Bounds,
    below: usize,
) -> Held {
    if core.asking(cpu, below).is_none() {
        return Held::No;
    }
    masked(cpu, |cpu| stand_still(core, cpu, bounds, below))
}

fn stand_still(core: Core<'_>, cpu: &mut impl CpuOps, bounds: &Bounds, below: usize) -> Held {
    let since = cpu.rdtsc();
    // Longer than the requester itself waits: past it, the requester has fallen silent.
    let silent = Deadline::after(cpu, bounds.hold.saturating_mul(4));
    let stuck = Deadline::after(cpu, bounds.finish);
    let mut held = Held::Released;
    let mut acked = 0;
    loop {
        let (tired, last) = (silent.passed(cpu), stuck.passed(cpu));
        let Some((number, request)) = obey(core, cpu, below, &mut acked) else {
            break;
        };
        flush_tlb(cpu);
        if request & PHASE == ENTERED && last {
            held = Held::SiblingStuck(number);
            break;
        }
        if request & PHASE == REQUESTED && tired && withdraw(core, cpu, &mut acked) {
            break;
        }
        if let Some(slot) = core.slots.get(number) {
            stuck.pause_briefly(cpu, &slot.handshake.request, request);
        }
    }
    flush_tlb(cpu);
    if let Some(me) = core.slots.get(core.me) {
        publish(cpu, &me.handshake.ack, 0);
    }
    note_held(core, cpu, since);
    held
}

/// Whom this CPU stands still for in this round: whoever entered on its word, else the
/// lowest-numbered sibling that asks, which then has its acknowledgement.
fn obey(
    core: Core<'_>,
    cpu: &mut impl CpuOps,
    below: usize,
    acked: &mut u32,
) -> Option<(usize, u32)> {
    let me = &core.slots.get(core.me)?.handshake;
    let (number, request) = core.asking(cpu, below)?;
    let wanted = ack_of(number, request);
    if request & PHASE != REQUESTED || *acked == wanted {
        return Some((number, request));
    }
    let entered = acked_request(core, cpu, *acked);
    if !withdraw(core, cpu, acked) {
        return entered;
    }
    publish(cpu, &me.ack, wanted);
    *acked = wanted;
    Some((number, request))
}

/// The CPU an acknowledgement names, and that CPU's request now.
fn acked_request(core: Core<'_>, cpu: &mut impl CpuOps, acked: u32) -> Option<(usize, u32)> {
    let who = (acked & ((1 << WHO_BITS) - 1)).checked_sub(1)? as usize;
    let request = poll(cpu, &core.slots.get(who)?.handshake.request);
    Some((who, request))
}

/// Takes back the acknowledgement; fails, leaving it in place, if its requester has entered.
fn withdraw(core: Core<'_>, cpu: &mut impl CpuOps, acked: &mut u32) -> bool {
    let Some(me) = core.slots.get(core.me).map(|slot| &slot.handshake) else {
        return true;
    };
    if *acked == 0 {
        return true;
    }
    publish(cpu, &me.ack, 0);
    // Partner: the fence between the requester's Entered and its second look at our ack.
    full_fence();
    let entered = acked_request(core, cpu, *acked)
        .is_some_and(|(who, request)| request & PHASE == ENTERED && ack_of(who, request) == *acked);
    if entered {
        publish(cpu, &me.ack, *acked);
        return false;
    }
    *acked = 0;
    true
}

fn note_held(core: Core<'_>, cpu: &mut impl CpuOps, since: u64) {
    let ticks = cpu.rdtsc().saturating_sub(since);
    if let Some(record) = core.slots.get(core.me).map(|slot| &slot.record) {
        let held = record.held.load(Ordering::Relaxed);
        record
            .held
            .store(held.saturating_add(ticks), Ordering::Relaxed);
        let holds = record.holds.load(Ordering::Relaxed);
        record
            .holds
            .store(holds.saturating_add(1), Ordering::Relaxed);
    }
}

/// Asks every sibling that may run to stand still, and returns when all do: this CPU may then open
/// its window, and must [`leave`] afterwards.
///
/// # Errors
/// [`Refused::NoAnswer`] before the bound, [`Refused::Unplaced`]; nobody is held any more.
pub(crate) fn enter(
    core: Core<'_>,
    cpu: &mut impl CpuOps,
    declared: &Declared,
    bounds: &Bounds,
    mut kick: impl FnMut(usize),
) -> Result<(), Refused> {
    let Some(me) = core.slots.get(core.me).map(|slot| &slot.handshake) else {
        return Err(Refused::NoSlot);
    };
    let round = (me.request.own() & !PHASE).wrapping_add(ONE);
    let requested = round | REQUESTED;
    let wanted = ack_of(core.me, requested);
    if declared.unplaced() {
        return Err(Refused::Unplaced);
    }
    publish(cpu, &me.request, requested);
    full_fence();
    for (number, slot) in core.siblings() {
        if slot.state().may_run() {
            kick(number);
        }
    }
    let deadline = Deadline::after(cpu, bounds.hold);
    loop {
        let last = deadline.passed(cpu);
        hold_point(core, cpu, bounds, core.me);
        let silent = match still_missing(core, cpu, wanted) {
            None => {
                publish(cpu, &me.request, round | ENTERED);
                // Partners: `withdraw` of a sibling that grew tired, `admit` of one that was absent.
                full_fence();
                if declared.unplaced() {
                    publish(cpu, &me.request, round | IDLE);
                    return Err(Refused::Unplaced);
                }
                let Some((number, ..)) = still_missing(core, cpu, wanted) else {
                    return Ok(());
                };
                publish(cpu, &me.request, requested);
                number
            }
            Some((number, slot, seen)) => {
                if !last {
                    deadline.pause_briefly(cpu, &slot.handshake.ack, seen);
                }
                number
            }
        };
        if last {
            publish(cpu, &me.request, round | IDLE);
            return Err(Refused::NoAnswer(silent));
        }
    }
}

/// The first sibling that may run and does not stand still for this request, and its answer so far.
fn still_missing<'a>(
    core: Core<'a>,
    cpu: &mut impl CpuOps,
    wanted: u32,
) -> Option<(usize, &'a Slot, u32)> {
    for (number, slot) in core.siblings() {
        let ack = poll(cpu, &slot.handshake.ack);
        if ack != wanted && slot.state().may_run() {
            return Some((number, slot, ack));
        }
    }
    None
}

/// Lets the siblings go after [`enter`] and the window.
pub(crate) fn leave(core: Core<'_>, cpu: &mut impl CpuOps) {
    if let Some(me) = core.slots.get(core.me).map(|slot| &slot.handshake) {
        let round = me.request.own() & !PHASE;
        publish(cpu, &me.request, round | IDLE);
    }
}

//! What the kernel declares about CPUs: about to start, gone, parked, and where they sit.
//!
//! Owns the state of CPUs that do not run, and the rings of the cores; the starting CPU's own part
//! is [`CacheSync::ap_online`].

use super::{CacheSync, Decided, RUNNING, numbering};
use crate::atomic::Ordering;
use crate::cpu::CpuOps;
use crate::error::Error;
use crate::rendezvous::CpuState;
use crate::rendezvous::admit::{Barred, admit};
use crate::rendezvous::slot::{Slot, UNPLACED};
use crate::topology::Place;

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Declares that CPU `number` is about to be started. On the CPU that will send the SIPI,
    /// before it does. Two threads of a core declared together count as running for each other.
    /// One CPU at a time declares others.
    ///
    /// Interrupts stay masked from before this call to after the SIPI: until then the declared CPU
    /// answers nobody, and who starts it must not be held for a sibling that waits for its answer.
    /// If a sibling is inside a caches-off window, waits until it is out.
    ///
    /// What this call and the kernel wrote for the AP has to be visible before the SIPI: a store to the
    /// local APIC's page comes after earlier stores by itself, the write of an x2APIC's ICR does not and
    /// needs `mfence; lfence` before it (Intel SDM 3A, "MSR Access in x2APIC Mode"). No cache has to be
    /// flushed: lines of write-back memory are taken to be coherent also for a CPU whose MTRRs are off,
    /// as other kernels do; the manuals' note on uncachable accesses that need not snoop is about the
    /// processor's own caches.
    ///
    /// # Errors
    /// [`Error::CpuOutOfRange`], [`Error::NotInitialised`]; [`Error::WrongPhase`] between `suspend` and
    /// a `boot_resume` that succeeded (or `suspend_aborted`); [`Error::ArrivedTwice`] when it runs
    /// or is starting already: one that was given up is declared offline first; [`Error::Busy`] while
    /// a rendezvous is open: [`CacheSync::attend`] and try again;
    /// [`Error::SiblingStuck`] when a sibling stays in its window. In all cases it is not declared:
    /// do not start it.
    pub fn starting(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        place: Place,
    ) -> Result<(), Error> {
        let decided = self.decided()?;
        if self.boot.phase.load(Ordering::Acquire) != RUNNING {
            return Err(Error::WrongPhase);
        }
        let slot = self.slot(number)?;
        if slot.state().may_run() {
            return Err(Error::ArrivedTwice { cpu: number });
        }
        slot.reset(CpuState::Absent);
        self.place(number, place, decided)?;
        let peers = self.peers(decided, number);
        slot.record.windows_seen.set(peers.sibling_windows());
        admit(&self.gate, peers, cpu).map_err(|barred| {
            self.recount_unplaced();
            match barred {
                Barred::Meeting => Error::Busy,
                Barred::Sibling(sibling) => Error::SiblingStuck { cpu: sibling },
            }
        })
    }

    /// Declares that CPU `number` executes nothing any more: it did not come up, or went offline.
    /// By whoever knows that: a CPU that is merely late is sent INIT first. Not by the CPU itself while
    /// it still runs.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::IsBootCpu`].
    pub fn offline(&self, number: usize) -> Result<(), Error> {
        self.stopped(number, CpuState::Absent)
    }

    /// Declares that CPU `number` is parked: it cannot run until it is declared starting again. For
    /// siblings and meetings the same as [`CacheSync::offline`]; the report shows it as parked.
    ///
    /// # Errors
    /// As for [`CacheSync::offline`].
    pub fn parked(&self, number: usize) -> Result<(), Error> {
        self.stopped(number, CpuState::Parked)
    }

    fn stopped(&self, number: usize, state: CpuState) -> Result<(), Error> {
        self.decided()?;
        let slot = self.slot(number)?;
        if self.expect_boot_cpu(number).is_ok() {
            return Err(Error::IsBootCpu { cpu: number });
        }
        slot.reset(state);
        self.recount_unplaced();
        Ok(())
    }

    /// A CPU that executes nothing is nobody's unknown sibling.
    pub(super) fn recount_unplaced(&self) {
        let unplaced = |slot: &Slot| {
            slot.state().may_run() && slot.handshake.core.load(Ordering::Relaxed) == UNPLACED
        };
        let any = self.declared.used(&self.slots).iter().any(unplaced);
        self.declared.set_unplaced(any);
    }

    /// Notes where a CPU sits, and links it into the ring of its core. While it does not run. While one
    /// of unknown place may run, any two CPUs may be siblings.
    pub(super) fn place(
        &self,
        number: usize,
        place: Place,
        decided: &Decided,
    ) -> Result<(), Error> {
        let me = &self.slot(number)?.handshake;
        let known = numbering(place) == self.boot.numbering.load(Ordering::Relaxed);
        let place = if known { place } else { Place::Unknown };
        let core = place
            .split(decided.platform.smt_shift)
            .map_or(UNPLACED, |(core, _)| core.saturating_add(1));
        if core == UNPLACED {
            self.declared.set_unplaced(true);
        }
        self.declared.note(number);
        let before = me.core.load(Ordering::Relaxed);
        if before == core && core != UNPLACED {
            return Ok(());
        }
        let used = self.declared.used(&self.slots);
        let next = me.next.load(Ordering::Relaxed);
        for other in used.iter().map(|slot| &slot.handshake) {
            let points_here = other.next.load(Ordering::Relaxed) == number as u32;
            if before != UNPLACED && points_here && other.core.load(Ordering::Relaxed) == before {
                other.next.store(next, Ordering::Release);
            }
        }
        if before != UNPLACED {
            self.declared.note_move();
        }
        let same_core = |slot: &&Slot| slot.handshake.core.load(Ordering::Relaxed) == core;
        let sibling = used.iter().filter(|_| core != UNPLACED).find(same_core);
        me.core.store(core, Ordering::Release);
        me.next.store(number as u32, Ordering::Release);
        if let Some(sibling) = sibling.map(|slot| &slot.handshake) {
            let next = sibling.next.load(Ordering::Relaxed);
            me.next.store(next, Ordering::Release);
            sibling.next.store(number as u32, Ordering::Release);
        }
        Ok(())
    }
}

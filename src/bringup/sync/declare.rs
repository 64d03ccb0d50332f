//! What the kernel declares about CPUs: about to start, gone, parked, and where they sit.
//!
//! Owns the state of CPUs that do not run, and the rings of the cores; the starting CPU's own part
//! is [`CacheSync::ap_online`].

use super::{CacheSync, Decided, RUNNING, numbering};
use crate::atomic::Ordering;
use crate::cpu::{CpuOps, CpuidReader};
use crate::error::Error;
use crate::rendezvous::CpuState;
use crate::rendezvous::admit::admit;
use crate::rendezvous::slot::{Slot, UNPLACED};
use crate::report::{NO_RENDEZVOUS, Outcome};
use crate::topology::{Place, other_apic_id, own_apic_id, second_apic_id};

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
    /// [`Error::CpuOutOfRange`], [`Error::NotInitialised`]; [`Error::Suspended`] between `suspend` and
    /// a `boot_resume` that succeeded (or `suspend_aborted`); [`Error::AlreadyDeclared`] when it runs
    /// or is starting already: one that was given up is declared offline first; [`Error::ApicIdTaken`];
    /// [`Error::Busy`] while a rendezvous is open: [`CacheSync::attend`] and try again;
    /// [`Error::SiblingStuck`] when a sibling stays in its window. In all cases it is not declared:
    /// do not start it.
    ///
    /// # Safety
    /// The CPU sits at `place`, and whatever later calls this crate with `number` is that CPU. An APIC id
    /// is checked when it comes; until then, and where the place is given otherwise, others turn caches
    /// off beside it on this word. Interrupts are masked as said.
    pub unsafe fn starting(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        place: Place,
    ) -> Result<(), Error> {
        let decided = self.decided()?;
        if self.boot.phase.load(Ordering::Acquire) != RUNNING {
            return Err(Error::Suspended);
        }
        let slot = self.slot(number)?;
        if slot.state().may_run() {
            return Err(Error::AlreadyDeclared { cpu: number });
        }
        self.place(number, place, decided)?;
        let peers = self.peers(decided, number);
        // Who has the same id has the same core: nobody else has to be looked at.
        let same = |(_, other): &(usize, &Slot)| {
            other.state().may_run() && other.apic_id() == slot.apic_id()
        };
        if let (Some(apic_id), Some((by, _))) = (slot.apic_id(), peers.siblings().find(same)) {
            self.recount_unplaced();
            return Err(Error::ApicIdTaken { apic_id, by });
        }
        slot.record.windows_seen.set(peers.sibling_windows());
        let admitted = admit(&self.gate, peers, cpu);
        if admitted.is_err() {
            self.recount_unplaced();
        }
        admitted
    }

    /// Declares that CPU `number` executes nothing any more: it did not come up, or went offline. One that
    /// was starting stays in the report as [`Path::NeverCame`](crate::report::Path::NeverCame).
    /// By whoever knows that: a CPU that is merely late is sent INIT first. Not by the CPU itself while
    /// it still runs.
    ///
    /// To unplug a CPU that runs: what it does moves elsewhere, it masks its interrupts for good, says so
    /// to the CPU that unplugs it, and halts (or is sent INIT); then this call, and after it no kick goes
    /// there. A rendezvous that is called in between waits for it in vain, and changes nothing.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::IsBootCpu`].
    ///
    /// # Safety
    /// It executes nothing from now on, until it is declared starting: others turn the caches of its core
    /// off without asking it.
    pub unsafe fn offline(&self, number: usize) -> Result<(), Error> {
        self.stopped(number, CpuState::Absent)
    }

    /// Declares that CPU `number` is parked: it cannot run until it is declared starting again. For
    /// siblings and rendezvous the same as [`CacheSync::offline`]; the report shows it as parked.
    ///
    /// # Errors
    /// As for [`CacheSync::offline`].
    ///
    /// # Safety
    /// As for [`CacheSync::offline`].
    pub unsafe fn parked(&self, number: usize) -> Result<(), Error> {
        self.stopped(number, CpuState::Parked)
    }

    fn stopped(&self, number: usize, state: CpuState) -> Result<(), Error> {
        self.decided()?;
        let slot = self.slot(number)?;
        if number == self.boot.number.load(Ordering::Relaxed) as usize {
            return Err(Error::IsBootCpu { cpu: number });
        }
        let given_up = slot.state() == CpuState::Starting && state == CpuState::Absent;
        slot.reset(state);
        if given_up {
            Outcome::NEVER_CAME.store(&slot.record, NO_RENDEZVOUS);
        }
        self.recount_unplaced();
        Ok(())
    }

    /// The number of the CPU that calls: of those declared, the one with its APIC id. For an AP that
    /// knows itself by nothing else. `None` where it was not declared with one. Any CPU, interrupts as
    /// they are; executes CPUID.
    #[must_use]
    pub fn own_number(&self, cpu: &impl CpuOps) -> Option<usize> {
        let cpuid = CpuidReader(cpu);
        let own = own_apic_id(&cpuid);
        let second = || self.holder_of(second_apic_id(&cpuid, own)?);
        self.holder_of(own).or_else(second)
    }

    /// CPUs that run and that a sibling waits for: each should call [`CacheSync::attend`] soon. For a
    /// boot CPU that sends the interrupts of APs which cannot yet do so themselves, whose `kick` does
    /// nothing then, from its wait loop. Any CPU, interrupts as they are.
    pub fn awaited(&self) -> impl Iterator<Item = usize> {
        let decided = self.decided.get();
        let peers = move |n| decided.map(|decided| self.peers(decided, n));
        let used = self.declared.used(&self.slots).iter().enumerate();
        used.filter(|(_, slot)| slot.state() == CpuState::Running)
            .filter_map(move |(n, _)| peers(n)?.is_awaited().then_some(n))
    }

    /// The CPU that may run and has this APIC id, as far as was declared.
    fn holder_of(&self, apic_id: u32) -> Option<usize> {
        let same = |slot: &Slot| slot.state().may_run() && slot.apic_id() == Some(apic_id);
        self.declared.used(&self.slots).iter().position(same)
    }

    /// The slot of the CPU that calls with `number`, whose APIC id must be the one it was declared with.
    /// Not looked at where CPUID raises an exception, which an AP may not handle yet: in a guest that
    /// owns no caching, no window is opened.
    pub(super) fn caller(
        &self,
        decided: &Decided,
        cpu: &impl CpuOps,
        number: usize,
    ) -> Result<&Slot, Error> {
        let slot = self.slot(number)?;
        let declared = slot.apic_id().filter(|_| decided.platform.guest.is_none());
        match declared.map(|id| (id, other_apic_id(&CpuidReader(cpu), id))) {
            Some((declared, Some(own))) => Err(Error::ApicIdDiffers {
                cpu: number,
                declared,
                own,
            }),
            _ => Ok(slot),
        }
    }

    /// A CPU came with a number that is another's: where it sits, and where that one does, is not known.
    pub(super) fn misplaced(&self, slot: &Slot) {
        if slot.state() == CpuState::Starting {
            slot.handshake.misplaced.store(1, Ordering::Release);
            self.declared.set_unplaced(true);
        }
    }

    /// A CPU that executes nothing is nobody's unknown sibling.
    pub(super) fn recount_unplaced(&self) {
        let unplaced = |slot: &Slot| {
            let handshake = &slot.handshake;
            let unplaced = handshake.core.load(Ordering::Relaxed) == UNPLACED;
            slot.state().may_run() && (unplaced || handshake.misplaced.load(Ordering::Acquire) != 0)
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
        let apic_id = match place {
            Place::Apic(id) => Some(id),
            Place::Core { .. } | Place::Unknown => None,
        };
        self.slot(number)?.set_apic_id(apic_id);
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
        if before != UNPLACED {
            let mut ring = used.iter().map(|slot| &slot.handshake);
            let behind = ring.find(|other| {
                let points_here = other.next.load(Ordering::Relaxed) == number as u32;
                points_here && other.core.load(Ordering::Relaxed) == before
            });
            if let Some(behind) = behind {
                behind.next.store(next, Ordering::Release);
            }
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

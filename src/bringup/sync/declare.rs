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
use crate::rendezvous::hold::Core;
use crate::rendezvous::slot::{UNDECLARED, UNKNOWN_CORE, publish};
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
        slot.reset(cpu);
        self.place(cpu, number, place, decided)?;
        let core = Core::of(&self.slots, number);
        slot.record
            .windows_seen
            .store(core.sibling_windows(), Ordering::Relaxed);
        cpu.clflush(slot.record.windows_seen.address());
        let bounds = &decided.policy.bounds;
        admit(&self.gate, &self.declared, core, slot, cpu, bounds).map_err(|barred| {
            self.forget_unknown(cpu, number);
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
    pub fn offline(&self, cpu: &mut impl CpuOps, number: usize) -> Result<(), Error> {
        self.stopped(cpu, number, CpuState::Absent)
    }

    /// Declares that CPU `number` is parked: it cannot run until it is declared starting again. For
    /// siblings and meetings the same as [`CacheSync::offline`]; the report shows it as parked.
    ///
    /// # Errors
    /// As for [`CacheSync::offline`].
    pub fn parked(&self, cpu: &mut impl CpuOps, number: usize) -> Result<(), Error> {
        self.stopped(cpu, number, CpuState::Parked)
    }

    fn stopped(&self, cpu: &mut impl CpuOps, number: usize, state: CpuState) -> Result<(), Error> {
        self.decided()?;
        let slot = self.slot(number)?;
        if self.expect_boot_cpu(number).is_ok() {
            return Err(Error::IsBootCpu { cpu: number });
        }
        let counted = slot.record.counted.load(Ordering::Relaxed) != 0;
        slot.reset(cpu);
        slot.set_state(cpu, state);
        self.forget_unknown(cpu, number);
        if counted {
            self.target.part();
        }
        Ok(())
    }

    /// Notes where a CPU sits, and links it into the ring of its core. While it does not run.
    pub(super) fn place(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        place: Place,
        decided: &Decided,
    ) -> Result<(), Error> {
        let me = &self.slot(number)?.handshake;
        let known = numbering(place) == self.boot.numbering.load(Ordering::Relaxed);
        let place = if known { place } else { Place::Unknown };
        let core = place
            .split(decided.platform.smt_shift)
            .map_or(UNKNOWN_CORE, |(core, _)| core.saturating_add(1));
        let before = me.core.load(Ordering::Relaxed);
        if before == core {
            return Ok(());
        }
        if before != UNDECLARED {
            self.unlink(cpu, number);
        }
        self.declared.note(cpu, number);
        publish(cpu, &me.core, core);
        if core == UNKNOWN_CORE {
            self.declared.lose(cpu);
            publish(cpu, &me.next, number as u32);
            return Ok(());
        }
        let sibling = self
            .declared
            .used(&self.slots)
            .iter()
            .enumerate()
            .find(|(other, slot)| {
                *other != number && slot.handshake.core.load(Ordering::Relaxed) == core
            });
        match sibling {
            Some((_, slot)) => {
                publish(cpu, &me.next, slot.handshake.next.load(Ordering::Relaxed));
                publish(cpu, &slot.handshake.next, number as u32);
            }
            None => publish(cpu, &me.next, number as u32),
        }
        Ok(())
    }

    /// A CPU that executes nothing is nobody's unknown sibling.
    pub(super) fn forget_unknown(&self, cpu: &mut impl CpuOps, number: usize) {
        let Some(slot) = self.slots.get(number) else {
            return;
        };
        if slot.handshake.core.load(Ordering::Relaxed) == UNKNOWN_CORE {
            self.unlink(cpu, number);
            publish(cpu, &slot.handshake.core, UNDECLARED);
        }
    }

    /// Takes a CPU out of the ring it was in: the kernel has another word about its place.
    fn unlink(&self, cpu: &mut impl CpuOps, number: usize) {
        let Ok(me) = self.slot(number).map(|slot| &slot.handshake) else {
            return;
        };
        if me.core.load(Ordering::Relaxed) == UNKNOWN_CORE {
            self.declared.find(cpu);
            return;
        }
        let core = me.core.load(Ordering::Relaxed);
        let next = me.next.load(Ordering::Relaxed);
        for slot in self.declared.used(&self.slots) {
            let before = &slot.handshake;
            if before.core.load(Ordering::Relaxed) == core
                && before.next.load(Ordering::Relaxed) == number as u32
            {
                publish(cpu, &before.next, next);
            }
        }
    }
}

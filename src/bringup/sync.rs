//! The public life cycle: boot CPU, APs, rendezvous, suspend, resume, run-time change.
//!
//! Owns the order of a machine's life; refuses to know instructions. One [`CacheSync`] per machine,
//! usually a `static`.
//!
//! ```text
//! boot CPU   boot_init .. starting(n) .. (SIPI) .. resync .. suspend | wake | boot_resume ..
//! AP n                                  ap_online(n) .. attend(n) ..  |     |
//! ```
//!
//! Every wait loop of the boot CPU while APs come up calls [`CacheSync::hold_point`]; the handler of the
//! interrupt that the `kick` callbacks send calls [`CacheSync::attend`], which does that too.
//!
//! **What is logged**, and where: on the boot CPU only, by [`CacheSync::boot_init`] (one line) and at
//! the end of every rendezvous it carried out (the report, at debug level, or as a warning if a CPU is
//! out of sync or got stuck), with interrupts as the caller has them and nobody waiting for it. APs log
//! nothing.
//!
//! **When a CPU cannot be brought in line**: an AP whose [`CacheSync::ap_online`] returns an error was
//! not touched, and has caches off if it came so: halt it and look why the kernel took it for another.
//! One whose outcome carries an error runs on with the types it came with, or with its MTRRs off
//! ([`Left::Torn`](crate::error::Left::Torn)), until a [`CacheSync::resync`] that succeeds. What it
//! shares with CPUs that have other types for it is not safe meanwhile: a kernel may rather park it.
//!
//! **The trampoline**: reset leaves CR0.CD set, and INIT leaves it as it was. Under
//! [`Resync::Early`] an AP that keeps it set until [`CacheSync::ap_online`] caches nothing under a wrong
//! type before its sync. But the caches of a core are off while one of its threads has CD set, and a
//! thread in VMX operation may not run then (some processors hang): clear CD and NW in the trampoline
//! where a sibling runs a guest, as at hot-plug beside a hypervisor, and where all APs start at once.
//! A CPU that checks in or is postponed has caching on when `ap_online` returns, with the map it
//! came with, until the rendezvous.
//!
//! **All APs at once**: [`CacheSync::starting`] for all of them, with interrupts masked until the last
//! SIPI is sent; then each AP calls [`CacheSync::ap_online`] by itself, while the boot CPU polls
//! [`CacheSync::hold_point`] until [`CacheSync::state`] says `Running` of all, or gives one up. The
//! threads of a core take turns, cores do not wait for each other. On the simulated machine 288 CPUs
//! (144 cores) with their MTRRs off are in line 2.3 ms after the wake so, and after 116 ms one by one;
//! if no AP asked its sibling, which the manuals forbid, it would be 1.9 ms (`--bench sync -- parallel`).
//!
//! **Hot-plug beside a hypervisor**: a thread that is held for a sibling, or meets, must have left VMX
//! root operation's guest and enter none before the call returns; a kick's handler does both by itself,
//! since an interrupt ends the guest's turn. A hypervisor that cannot let go of a core in time brings
//! its sibling up with the policy deferred, and resyncs when it can.
//!
//! **Interrupts**: the kick's handler may acknowledge its interrupt (EOI) before or after the call.
//! A CPU that meets stays in [`CacheSync::attend`] until the rendezvous is over.

mod boot;
mod compared;
mod declare;
mod in_line;
mod meet;
mod sleep;
mod step;
mod tally;

use spin::Once;

pub use self::sleep::Saved;
pub use self::tally::Summary;
use crate::atomic::{Ordering, Word};
use crate::cpu::CpuOps;
use crate::delta::Changes;
use crate::error::Error;
use crate::platform::Platform;
use crate::policy::{Policy, Resync, Ticks};
use crate::program::{masked, turn_caching_on};
pub use crate::rendezvous::Attendance;
use crate::rendezvous::peers::{Declared, Peers};
use crate::rendezvous::slot::Slot;
use crate::rendezvous::target::Target;
use crate::rendezvous::{CpuState, Gate};
use crate::report::{NO_RENDEZVOUS, Outcome, Path, Report};
use crate::routing::Routing;
use crate::snapshot::{SNAPSHOT_WORDS, Snapshot};
use crate::topology::Place;

use self::compared::Compared;
use self::in_line::Consent;

/// Life of the machine, as far as the target goes.
const RUNNING: u32 = 1;
const SUSPENDED: u32 = 2;

/// The memory-type state of one machine of up to `CPUS` logical processors, and every CPU's part
/// in keeping it.
///
/// Two 128-byte lines per CPU and about 1 KiB more. No heap; no lock is taken by an AP.
#[derive(Debug)]
pub struct CacheSync<const CPUS: usize> {
    /// What was found and chosen on the boot CPU, once: APs take one load.
    decided: Once<Decided>,
    boot: BootLine,
    declared: Declared,
    gate: Gate,
    target: Target<SNAPSHOT_WORDS>,
    slots: [Slot; CPUS],
}

/// Words of the boot CPU alone.
#[derive(Debug)]
#[repr(C, align(128))]
struct BootLine {
    /// [`RUNNING`] or [`SUSPENDED`]; 0 before `boot_init`.
    phase: Word,
    /// The boot CPU's number.
    number: Word,
    /// How places are given: [`numbering`].
    numbering: Word,
}

#[derive(Clone, Copy, Debug)]
struct Decided {
    platform: Platform,
    policy: Policy,
    /// The policy's bounds.
    ticks: Ticks,
    /// What the firmware's registers said on the boot CPU.
    routing: Routing,
}

impl<const CPUS: usize> CacheSync<CPUS> {
    /// State for a machine that has not booted: for a `static`.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        // An acknowledgement holds a CPU number plus one in 16 bits.
        const { assert!(CPUS < 0xffff, "at most 65534 CPUs") };
        Self {
            decided: Once::new(),
            boot: BootLine {
                phase: Word::new(0),
                number: Word::new(0),
                numbering: Word::new(0),
            },
            declared: Declared::new(),
            gate: Gate::new(),
            target: Target::new(),
            slots: [const { Slot::new() }; CPUS],
        }
    }

    /// What was found out about the machine; `None` before `boot_init`.
    #[must_use]
    pub fn platform(&self) -> Option<&Platform> {
        self.decided.get().map(|decided| &decided.platform)
    }

    /// The policy in force; `None` before `boot_init`.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.decided.get().map(|decided| &decided.policy)
    }

    /// What the registers that only firmware sets held on the boot CPU: what [`CacheSync::check`]
    /// compares the other CPUs' with. `None` before `boot_init`.
    #[must_use]
    pub fn routing(&self) -> Option<&Routing> {
        self.decided.get().map(|decided| &decided.routing)
    }

    /// The state every CPU is to have, and its generation. On any CPU.
    ///
    /// # Errors
    /// [`Error::NotInitialised`]; [`Error::TargetBusy`] when it was being replaced: ask again.
    pub fn target(&self) -> Result<(u32, Snapshot), Error> {
        let mut target = Snapshot::empty(self.decided()?.platform.phys_bits);
        let epoch = self.target.epoch();
        target.fill_from(self.target.words());
        if epoch == 0 || self.target.epoch() != epoch {
            return Err(Error::TargetBusy);
        }
        Ok((epoch, target))
    }

    /// CPUs that came online and were brought in line with the target, the boot CPU too. One that
    /// checked in for a rendezvous is not yet among them: [`CacheSync::state`] says whether it is up.
    #[must_use]
    pub fn online(&self) -> u32 {
        let epoch = self.target.epoch();
        let used = self.declared.used(&self.slots).iter();
        used.filter(|slot| slot.state() == CpuState::Running && slot.holds(epoch))
            .count() as u32
    }

    /// Where CPU `number` is in its life: [`CpuState::Running`] once its [`CacheSync::ap_online`] has
    /// returned or is about to. On any CPU; for a boot CPU that waits for one it started, and calls
    /// [`CacheSync::hold_point`] between looks.
    ///
    /// # Errors
    /// [`Error::CpuOutOfRange`].
    pub fn state(&self, number: usize) -> Result<CpuState, Error> {
        Ok(self.slot(number)?.state())
    }

    /// Brings this AP in line, or checks it in for the rendezvous, as the policy says. The first
    /// thing an AP does: best with CR0.CD still set as reset left it, so that nothing is cached
    /// under a wrong type before. Interrupts are masked throughout.
    ///
    /// `kick` is called with the number of a sibling that has to stand still: it should make that
    /// CPU call [`CacheSync::hold_point`] soon, by an interrupt. Without one, a sibling that polls
    /// is waited for, and the AP is postponed if none answers.
    ///
    /// Afterwards the AP takes interrupts, or polls [`CacheSync::attend`]: else no rendezvous comes
    /// about.
    ///
    /// # Errors
    /// [`Error::NotInitialised`], [`Error::CpuOutOfRange`], [`Error::NotDeclared`],
    /// [`Error::ArrivedTwice`], [`Error::ApicIdDiffers`]: nothing was changed. What goes wrong with this CPU's own registers
    /// is in the [`Outcome`].
    pub fn ap_online(
        &self,
        cpu: &mut impl CpuOps,
        number: usize,
        kick: impl FnMut(usize),
    ) -> Result<Outcome, Error> {
        let decided = self.decided()?;
        let slot = match self.caller(decided, cpu, number) {
            Err(error @ Error::ApicIdDiffers { .. }) => {
                self.misplaced(self.slot(number)?);
                return Err(error);
            }
            found => found?,
        };
        match slot.state() {
            CpuState::Starting => {}
            CpuState::Running => return Err(Error::ArrivedTwice { cpu: number }),
            CpuState::Absent | CpuState::Parked => {
                return Err(Error::NotDeclared { cpu: number });
            }
        }
        // A kick taken in here would change this CPU's registers under its own comparison; holds and
        // rendezvous are looked for in every wait instead.
        masked(cpu, |cpu| {
            if !self.attend_now(decided, cpu, number) {
                match decided.policy.resync {
                    Resync::Deferred => check_in(cpu, slot),
                    Resync::Early => _ = self.sync_alone(decided, cpu, number, Consent::Ask(kick)),
                }
            }
            slot.set_state(CpuState::Running);
            // A rendezvous that was called meanwhile waits for this CPU.
            self.attend_now(decided, cpu, number);
        });
        Outcome::load(&slot.record).ok_or(Error::NotInitialised)
    }

    /// Stands still for as long as a sibling has its caches off, or asks to; returns at once
    /// otherwise. In the handler of the kick interrupt and in every wait loop of the boot CPU while
    /// APs come up. Outside VMX root operation transitions; interrupts are masked while held.
    ///
    /// # Errors
    /// [`Error::SiblingStuck`] when a sibling never came out of its window: this CPU goes on, with
    /// the caches of its core off. [`Error::NotInitialised`], [`Error::CpuOutOfRange`],
    /// [`Error::ApicIdDiffers`]: nothing was done; the sibling is postponed.
    pub fn hold_point(&self, cpu: &mut impl CpuOps, number: usize) -> Result<(), Error> {
        let decided = self.decided()?;
        self.slot(number)?;
        let peers = self.peers(decided, number);
        if !peers.is_asked() {
            return Ok(());
        }
        self.caller(decided, cpu, number)?;
        peers.hold_point(cpu)
    }

    /// What every CPU did last. Complete once they have all come online or met.
    #[must_use]
    pub fn report(&self) -> Report<'_> {
        Report::of(&self.slots, &self.gate, self.target.epoch())
    }

    /// Compares this CPU and brings it in line, outside a rendezvous.
    #[inline(never)] // one comparison at a time on the stack of those who call it
    fn sync_alone<K: FnMut(usize)>(
        &self,
        decided: &Decided,
        cpu: &mut impl CpuOps,
        number: usize,
        consent: Consent<K>,
    ) -> Outcome {
        let mut compared = Compared::nothing(decided, self.peers(decided, number));
        self.bring_in_line(cpu, &mut compared, consent)
    }

    fn decided(&self) -> Result<&Decided, Error> {
        self.decided.get().ok_or(Error::NotInitialised)
    }

    fn slot(&self, number: usize) -> Result<&Slot, Error> {
        self.slots.get(number).ok_or(Error::CpuOutOfRange {
            cpu: number,
            cpus: CPUS,
        })
    }

    /// The boot CPU's slot, if it is the boot CPU that calls, with its number.
    fn boot_cpu(&self, decided: &Decided, cpu: &impl CpuOps, me: usize) -> Result<&Slot, Error> {
        let boot = self.boot.number.load(Ordering::Relaxed) as usize;
        self.slot(me)?;
        if me != boot {
            return Err(Error::NotBootCpu { cpu: me, boot });
        }
        self.caller(decided, cpu, me)
    }

    fn peers<'a>(&'a self, decided: &'a Decided, me: usize) -> Peers<'a> {
        Peers {
            slots: &self.slots,
            declared: &self.declared,
            me,
            bounds: &decided.ticks,
        }
    }
}

#[cfg(not(loom))]
impl<const CPUS: usize> Default for CacheSync<CPUS> {
    fn default() -> Self {
        Self::new()
    }
}

/// The kind of a place: what two CPUs' places must share to be compared.
const fn numbering(place: Place) -> u32 {
    match place {
        Place::Apic(_) => 1,
        Place::Core { .. } => 2,
        Place::Unknown => 3,
    }
}

/// An AP until the rendezvous. With caching on: with E clear everything is uncachable all the same, but
/// for its siblings, whose caches are off while this one's are; with E set it runs under the map it has.
fn check_in(cpu: &mut impl CpuOps, slot: &Slot) {
    turn_caching_on(cpu);
    let outcome = Outcome {
        path: Path::CheckedIn,
        changes: Changes::empty(),
        error: None,
        ticks: 0,
    };
    outcome.store(&slot.record, NO_RENDEZVOUS);
}

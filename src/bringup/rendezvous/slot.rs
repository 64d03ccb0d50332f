//! One CPU's two lines of shared memory, and how CPUs signal through them.
//!
//! A word has one writer, named in its comment; the other CPUs only read it. It is written by plain
//! stores: a CPU whose MTRRs are off may be the writer, and a locked instruction would lock the bus.

use crate::atomic::{Ordering, WideWord, Word};

macro_rules! const_fn_unless_loom {
    ($(#[$meta:meta])* fn $name:ident() -> Self $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        pub(crate) const fn $name() -> Self $body
        $(#[$meta])*
        #[cfg(loom)]
        pub(crate) fn $name() -> Self $body
    };
}
pub(crate) use const_fn_unless_loom;

/// What the kernel has said, and the CPU done, about one CPU's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CpuState {
    /// Not started, or gone: it executes nothing.
    Absent = 0,
    /// Declared before its SIPI; counts as running for its siblings.
    Starting = 1,
    /// Past its `ap_online`.
    Running = 2,
    /// The kernel's promise that it cannot run until it is declared starting again.
    Parked = 3,
}

impl CpuState {
    const fn from_word(word: u32) -> Self {
        match word {
            1 => Self::Starting,
            2 => Self::Running,
            3 => Self::Parked,
            _ => Self::Absent,
        }
    }

    /// Whether the CPU may be executing instructions.
    #[must_use]
    pub const fn may_run(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// What a CPU did in a rendezvous, below the rendezvous' number in its `arrived` word.
pub(crate) const AT: u32 = 1;
pub(crate) const DONE: u32 = 2;
/// Went away without a step: there was nothing to do, or it looked too late.
pub(crate) const LEFT: u32 = 3;
/// The bits of `arrived`, and of the gate's word, that are below the number of the rendezvous.
pub(crate) const PHASE: u32 = 0b111;
/// The bits of `request` that are below the round.
pub(crate) const REQUEST_PHASE: u32 = 0b11;

/// The bits of `cap` above MTRRCAP's: it was read.
pub(crate) const CAP_READ: u32 = 1 << 31;
/// This CPU has run since it last lost its caches.
pub(crate) const RAN: u32 = 1 << 30;

/// The `core` word of a CPU that was never declared, or whose place is not known.
pub(crate) const UNPLACED: u32 = 0;

/// The line other CPUs poll: written by its own CPU, but for `state`, `core` and `next`, which
/// the boot CPU writes while this CPU does not run.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Handshake {
    /// [`CpuState`]. Boot CPU: Absent, Starting, Parked. This CPU: Running.
    state: Word,
    /// Core number plus one, or [`UNPLACED`]. Boot CPU.
    pub(crate) core: Word,
    /// The next CPU of the same core, in a ring; itself when alone. Boot CPU.
    pub(crate) next: Word,
    /// Number of the rendezvous the boot CPU wants this CPU in. Boot CPU.
    pub(crate) summon: Word,
    /// What this CPU did in which rendezvous. Pairs with the leader's wait. This CPU.
    pub(crate) arrived: Word,
    /// This CPU's hold request. Pairs with the siblings' `hold_point`. This CPU.
    pub(crate) request: Word,
    /// Whose request this CPU is parked for. Pairs with the requester's wait. This CPU.
    pub(crate) ack: Word,
    /// Windows this CPU has opened since the boot CPU was initialised. This CPU.
    pub(crate) windows: Windows,
    /// The APIC id it was declared with, and a bit above: 0 without one. Boot CPU.
    apic: WideWord,
    /// 1: a CPU came with its number and another APIC id. That CPU; cleared by the boot CPU at start.
    pub(crate) misplaced: Word,
}

/// The line its own CPU writes results to: read by the boot CPU, for a summary or a report.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Record {
    /// The siblings' windows this CPU's TLB has been flushed after. This CPU (boot CPU at start).
    pub(crate) windows_seen: Windows,
    /// Epoch of the target this CPU holds; 0 when it is not known to hold one. This CPU.
    pub(crate) epoch: Word,
    /// What MTRRCAP says about the map and [`CAP_READ`], when it was read since reset; and [`RAN`]. This
    /// CPU (the boot CPU at start).
    pub(crate) cap: Word,
    /// Odd while the words below are written: pairs with the report's `Acquire`.
    pub(crate) serial: Word,
    /// Times this CPU was held.
    pub(crate) holds: Word,
    /// What became of this CPU, as a [`crate::report::Gist`].
    pub(crate) gist: WideWord,
    /// MSR the error is about.
    pub(crate) error_msr: WideWord,
    /// Value the error is about.
    pub(crate) error_value: WideWord,
    /// Ticks from the first read to the last write.
    pub(crate) ticks: WideWord,
    /// Ticks this CPU was held for its siblings.
    pub(crate) held: WideWord,
}

/// Windows a CPU has opened, and how many of them took cacheability away from some address.
#[derive(Debug)]
pub(crate) struct Windows(WideWord);

/// [`Windows`] at one moment, or the sum of those of several CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct WindowCount(u64);

impl Windows {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self(WideWord::new(0))
        }
    }

    pub(crate) fn count(&self) -> WindowCount {
        WindowCount(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, count: WindowCount) {
        self.0.store(count.0, Ordering::Release);
    }

    /// One more is about to be opened.
    pub(crate) fn open(&self, takes_away: bool) {
        let one = WindowCount(1 | u64::from(takes_away) << 32);
        self.set(WindowCount(self.0.load(Ordering::Relaxed)).and(one));
    }
}

impl WindowCount {
    /// No window, among the siblings there are after so many changes of who they are.
    pub(crate) const fn among(changes: u32) -> Self {
        Self((changes as u64) << 48)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// How many windows.
    pub(crate) const fn opened(self) -> u32 {
        self.0 as u32
    }

    /// Whether, between `earlier` and this, memory stopped being cacheable.
    pub(crate) const fn took_away_since(self, earlier: Self) -> bool {
        self.0 >> 32 != earlier.0 >> 32
    }
}

/// Everything shared about one CPU.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) handshake: Handshake,
    pub(crate) record: Record,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Handshake>() == 128 && align_of::<Handshake>() == 128);
    assert!(size_of::<Record>() == 128 && size_of::<Slot>() == 256);
};

impl Slot {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                handshake: Handshake {
                    state: Word::new(0),
                    core: Word::new(UNPLACED),
                    next: Word::new(0),
                    summon: Word::new(0),
                    arrived: Word::new(0),
                    request: Word::new(0),
                    ack: Word::new(0),
                    windows: Windows::new(),
                    apic: WideWord::new(0),
                    misplaced: Word::new(0),
                },
                record: Record {
                    windows_seen: Windows::new(),
                    epoch: Word::new(0),
                    cap: Word::new(0),
                    serial: Word::new(0),
                    holds: Word::new(0),
                    gist: WideWord::new(0),
                    error_msr: WideWord::new(0),
                    error_value: WideWord::new(0),
                    ticks: WideWord::new(0),
                    held: WideWord::new(0),
                },
            }
        }
    }

    /// The APIC id this CPU was declared with, if by one.
    pub(crate) fn apic_id(&self) -> Option<u32> {
        let word = self.handshake.apic.load(Ordering::Acquire);
        (word != 0).then_some(word as u32)
    }

    pub(crate) fn set_apic_id(&self, id: Option<u32>) {
        let word = id.map_or(0, |id| u64::from(id) | 1 << 32);
        self.handshake.apic.store(word, Ordering::Release);
    }

    pub(crate) fn state(&self) -> CpuState {
        CpuState::from_word(self.handshake.state.load(Ordering::Acquire))
    }

    pub(crate) fn set_state(&self, state: CpuState) {
        self.handshake.state.store(state as u32, Ordering::Release);
    }

    /// Whether this CPU is known to hold the target of this epoch.
    pub(crate) fn holds(&self, epoch: u32) -> bool {
        epoch != 0 && self.record.epoch.load(Ordering::Relaxed) == epoch
    }

    /// The number of the last rendezvous this CPU was wanted in.
    pub(crate) fn summoned(&self) -> u32 {
        self.handshake.summon.load(Ordering::Relaxed)
    }

    /// The rendezvous this CPU came to and is still in, as far as it has said: its number.
    pub(crate) fn unfinished(&self) -> Option<u32> {
        let arrived = self.handshake.arrived.load(Ordering::Acquire);
        (arrived & PHASE == AT).then_some(arrived & !PHASE)
    }

    /// The rendezvous this CPU is wanted in and has not come to: its number.
    pub(crate) fn awaited(&self) -> Option<u32> {
        let (wanted, arrived) = (
            self.summoned(),
            self.handshake.arrived.load(Ordering::Acquire),
        );
        (self.state().may_run() && arrived & !PHASE != wanted).then_some(wanted)
    }

    /// Forgets what a CPU that stopped was doing. By the boot CPU, while it does not run.
    pub(crate) fn reset(&self, state: CpuState) {
        self.forget(state, self.record.cap.load(Ordering::Relaxed) & RAN);
    }

    /// The same of a CPU that lost its caches too.
    pub(crate) fn reset_by_sleep(&self, state: CpuState) {
        self.forget(state, 0);
    }

    fn forget(&self, state: CpuState, ran: u32) {
        let handshake = &self.handshake;
        handshake.arrived.store(0, Ordering::Relaxed);
        // The round goes on: an acknowledgement of the last life must not fit the next one's request.
        let round = handshake.request.load(Ordering::Relaxed) & !REQUEST_PHASE;
        handshake.request.store(round, Ordering::Relaxed);
        handshake.ack.store(0, Ordering::Relaxed);
        handshake.misplaced.store(0, Ordering::Relaxed);
        self.record.epoch.store(0, Ordering::Relaxed);
        self.record.cap.store(ran, Ordering::Relaxed);
        // What it did in its last life says nothing about the next.
        self.record.gist.store(0, Ordering::Relaxed);
        self.set_state(state);
    }
}

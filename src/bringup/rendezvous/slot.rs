//! One CPU's two lines of shared memory, and how CPUs signal through them.
//!
//! A word has one writer, named in its comment; the other CPUs only read it. A CPU whose MTRRs are
//! off neither reads what sits in another CPU's cache nor is snooped, so whoever writes a word
//! pushes its line to memory ([`publish`]), and whoever waits for such a CPU drops its own copy
//! before looking again ([`poll`]).

use crate::atomic::{Ordering, WideWord, Word};
use crate::cpu::CpuOps;

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

/// The `core` word of a CPU that was never declared.
pub(crate) const UNDECLARED: u32 = 0;
/// The `core` word of a CPU whose place the kernel does not know.
pub(crate) const UNKNOWN_CORE: u32 = u32::MAX;

/// The line other CPUs poll: written by its own CPU, but for `state`, `core` and `next`, which the
/// boot CPU writes while this CPU does not run.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Handshake {
    /// [`CpuState`]. Boot CPU: Absent, Starting, Parked. This CPU: Running.
    state: Word,
    /// Core number plus one, [`UNDECLARED`] or [`UNKNOWN_CORE`]. Boot CPU.
    pub(crate) core: Word,
    /// The next CPU of the same core, in a ring; itself when alone. Boot CPU.
    pub(crate) next: Word,
    /// Number of the meeting the boot CPU wants this CPU in. Boot CPU.
    pub(crate) summon: Word,
    /// What this CPU did in which meeting. Pairs with the leader's wait. This CPU.
    pub(crate) arrived: Word,
    /// This CPU's hold request. Pairs with the siblings' `hold_point`. This CPU.
    pub(crate) request: Word,
    /// Whose request this CPU is parked for. Pairs with the requester's wait. This CPU.
    pub(crate) ack: Word,
    /// Windows this CPU has opened since the boot CPU was initialised. This CPU.
    pub(crate) windows: Word,
}

/// The line its own CPU writes results to: read once, by the boot CPU, for a report.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Record {
    /// The siblings' windows this CPU's TLB has been flushed after. This CPU (boot CPU at start).
    pub(crate) windows_seen: Word,
    /// Whether the next meeting has to bring this CPU in line. This CPU.
    pub(crate) pending: Word,
    /// Whether this CPU is in the count of the word [`super::target::Target`] holds. This CPU.
    pub(crate) counted: Word,
    /// Whether MTRRCAP was compared since reset. This CPU (cleared by the boot CPU at start).
    pub(crate) compared: Word,
    /// Bumped with `Release` after the words below are written: pairs with the report's `Acquire`.
    pub(crate) serial: Word,
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
    /// Times this CPU was held.
    pub(crate) holds: Word,
    /// Epoch of the target this CPU last held.
    pub(crate) epoch: Word,
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

impl Slot {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                handshake: Handshake {
                    state: Word::new(0),
                    core: Word::new(UNDECLARED),
                    next: Word::new(0),
                    summon: Word::new(0),
                    arrived: Word::new(0),
                    request: Word::new(0),
                    ack: Word::new(0),
                    windows: Word::new(0),
                },
                record: Record {
                    windows_seen: Word::new(0),
                    pending: Word::new(0),
                    counted: Word::new(0),
                    compared: Word::new(0),
                    serial: Word::new(0),
                    gist: WideWord::new(0),
                    error_msr: WideWord::new(0),
                    error_value: WideWord::new(0),
                    ticks: WideWord::new(0),
                    held: WideWord::new(0),
                    holds: Word::new(0),
                    epoch: Word::new(0),
                },
            }
        }
    }

    pub(crate) fn state(&self) -> CpuState {
        CpuState::from_word(self.handshake.state.load(Ordering::Acquire))
    }

    /// The same, of a CPU whose MTRRs may be off.
    pub(crate) fn state_now(&self, cpu: &mut impl CpuOps) -> CpuState {
        CpuState::from_word(poll(cpu, &self.handshake.state))
    }

    /// The number of the last meeting this CPU was wanted in.
    pub(crate) fn summoned(&self) -> u32 {
        self.handshake.summon.load(Ordering::Relaxed)
    }

    /// The meeting this CPU came to and is still in, as far as it has said: its number.
    pub(crate) fn unfinished(&self) -> Option<u32> {
        let arrived = self.handshake.arrived.load(Ordering::Acquire);
        (arrived & super::PHASE == super::AT).then_some(arrived & !super::PHASE)
    }

    pub(crate) fn set_state(&self, cpu: &mut impl CpuOps, state: CpuState) {
        publish(cpu, &self.handshake.state, state as u32);
    }

    /// Forgets what a CPU that lost its state was doing. By the boot CPU, while it does not run.
    pub(crate) fn reset(&self, cpu: &mut impl CpuOps) {
        let handshake = &self.handshake;
        handshake.arrived.store(0, Ordering::Relaxed);
        // The round goes on: an acknowledgement of the last life must not fit the next one's request.
        let round = handshake.request.load(Ordering::Relaxed) & !super::hold::PHASE;
        handshake.request.store(round, Ordering::Relaxed);
        handshake.ack.store(0, Ordering::Relaxed);
        self.record.pending.store(0, Ordering::Relaxed);
        self.record.compared.store(0, Ordering::Relaxed);
        // What it did in its last life says nothing about the next.
        self.record.gist.store(0, Ordering::Relaxed);
        self.record.counted.store(0, Ordering::Relaxed);
        cpu.clflush(self.record.pending.address());
        self.set_state(cpu, CpuState::Absent);
    }
}

/// Writes a word of one's own, and its line to memory.
pub(crate) fn publish(cpu: &mut impl CpuOps, word: &Word, value: u32) {
    word.store(value, Ordering::Release);
    cpu.clflush(word.address());
}

/// Reads a word that a CPU with its MTRRs off may have written.
pub(crate) fn poll(cpu: &mut impl CpuOps, word: &Word) -> u32 {
    cpu.clflush(word.address());
    word.load(Ordering::Acquire)
}

/// Pushes every line of a value to memory.
pub(crate) fn flush_lines<T>(cpu: &mut impl CpuOps, value: &T) {
    /// The smallest line CLFLUSH has worked on.
    const LINE: usize = 64;
    let start = core::ptr::from_ref(value).cast::<u8>();
    let last = size_of::<T>().saturating_sub(1);
    for offset in (0..last).step_by(LINE) {
        cpu.clflush(start.wrapping_add(offset));
    }
    cpu.clflush(start.wrapping_add(last));
}

/// A bound of a wait, as a point of this CPU's time-stamp counter.
///
/// Whether it has passed is asked before the last look, never after: a CPU that was itself kept away
/// meanwhile, by its hypervisor or by SMM, must not take that for the silence of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(u64);

impl Deadline {
    pub(crate) fn after(cpu: &mut impl CpuOps, ticks: u64) -> Self {
        Self(cpu.rdtsc().saturating_add(ticks))
    }

    pub(crate) fn passed(self, cpu: &mut impl CpuOps) -> bool {
        cpu.rdtsc() >= self.0
    }

    /// Pauses on `word` while it is `seen`, for a wait that watches this word alone.
    pub(crate) fn pause(self, cpu: &mut impl CpuOps, word: &Word, seen: u32) {
        cpu.pause_while(word, seen, self.0);
    }

    /// Pauses a moment: for a wait that must look at other words as well.
    pub(crate) fn pause_briefly(self, cpu: &mut impl CpuOps, word: &Word, seen: u32) {
        /// Ticks: some tens of microseconds.
        const MOMENT: u64 = 1 << 16;
        let until = cpu.rdtsc().saturating_add(MOMENT).min(self.0);
        cpu.pause_while(word, seen, until);
    }
}

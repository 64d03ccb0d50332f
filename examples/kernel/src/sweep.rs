//! The victims' side of `workload=wc-neighbour`: CPUs that sweep memory of their own until they are told to stop.

use crate::racy::Racy;
use crate::timings::Timings;
use crate::{clock, percpu};
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// More than a core's own caches hold, mostly, and what a first-level cache holds.
const LARGE: usize = 4 << 20;
const SMALL: usize = 16 << 10;
const LINE: usize = 64;

/// CPUs that take part beside the writer; others rest.
const MOST: usize = 7;

/// What a victim does.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Work {
    /// Keeps busy without memory, so that nothing but the memory traffic makes a difference.
    Spin = 0,
    Large = 1,
    Small = 2,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spin => "nothing",
            Self::Large => "4 MiB",
            Self::Small => "16 KiB",
        })
    }
}

#[repr(C, align(0x200000))]
struct Buffers([Racy<MaybeUninit<[u8; LARGE]>>; MOST + 1]);

/// The first is spare: the writer's, where there is no frame buffer.
#[unsafe(link_section = ".stacks")]
static BUFFERS: Buffers = Buffers([const { Racy::new(MaybeUninit::zeroed()) }; MOST + 1]);

/// What all do, and how far they are to be; written by the boot CPU.
#[repr(C, align(128))]
struct Orders {
    work: AtomicU32,
    /// `WAIT`, `RUN` or `STOP`; its Release stores pair with the victims' Acquire.
    state: AtomicU32,
}

const WAIT: u32 = 0;
const RUN: u32 = 1;
const STOP: u32 = 2;

static ORDERS: Orders = Orders {
    work: AtomicU32::new(0),
    state: AtomicU32::new(STOP),
};

/// A victim's own: written by it alone, read by the boot CPU after it has answered; `pieces` always.
#[repr(C, align(128))]
struct Log {
    /// 0 until the victim is ready, then one more than the pieces it has done.
    pieces: AtomicU32,
    timings: Racy<Timings>,
}

static LOGS: [Log; MOST + 1] = [const {
    Log {
        pieces: AtomicU32::new(0),
        timings: Racy::new(Timings::EMPTY),
    }
}; MOST + 1];

/// Victims there are: CPUs 1 to this number.
pub fn victims() -> usize {
    (percpu::count() - 1).min(MOST)
}

/// RAM that nobody uses.
pub fn spare() -> Range<u64> {
    let start = BUFFERS.0[0].get() as u64;
    start..start + LARGE as u64
}

pub fn prepare(work: Work) {
    for log in &LOGS {
        log.pieces.store(0, Relaxed);
    }
    ORDERS.work.store(work as u32, Relaxed);
    ORDERS.state.store(WAIT, Release);
}

/// Whether victim `n` is ready, and has done so many pieces.
pub fn has_done(n: usize, pieces: u32) -> bool {
    LOGS[n].pieces.load(Acquire) > pieces
}

pub fn go() {
    ORDERS.state.store(RUN, Release);
}

pub fn stop() {
    ORDERS.state.store(STOP, Release);
}

/// Ticks that CPU `n`, which has answered, takes for 16 KiB.
pub fn median(n: usize) -> u64 {
    // SAFETY: the victim wrote it before it answered.
    unsafe { (*LOGS[n].timings.get()).median() }
}

/// CPU `n`, in its kick handler, with interrupts off: until the boot CPU says stop.
pub fn serve(n: usize) {
    let (log, work) = (&LOGS[n], ORDERS.work.load(Relaxed));
    // SAFETY: this CPU's own until it answers.
    let timings = unsafe { &mut *log.timings.get() };
    *timings = Timings::EMPTY;
    for done in 0..(LARGE / SMALL) as u64 {
        sweep_next(n, work, done * SMALL as u64); // warm
    }
    log.pieces.store(1, Release); // pairs with `has_done`
    while ORDERS.state.load(Acquire) == WAIT {
        spin();
    }
    let (mut bytes, mut pieces) = (0, 1u32);
    while ORDERS.state.load(Acquire) == RUN {
        let start = clock::now();
        bytes += sweep_next(n, work, bytes);
        timings.add(clock::now().wrapping_sub(start));
        pieces = pieces.saturating_add(1);
        log.pieces.store(pieces, Relaxed);
    }
}

/// Reads the next 16 KiB of the buffer, a word of each line; returns how many bytes that were.
fn sweep_next(n: usize, work: u32, done: u64) -> u64 {
    if work == Work::Spin as u32 {
        return spin();
    }
    let size = if work == Work::Large as u32 {
        LARGE
    } else {
        SMALL
    };
    let from = BUFFERS.0[n].get() as usize + done as usize % size;
    for at in (from..from + SMALL).step_by(LINE) {
        // SAFETY: inside this CPU's buffer; any bytes will do.
        unsafe { (at as *const u64).read_volatile() };
    }
    SMALL as u64
}

/// A while without memory accesses; 0 bytes.
pub fn spin() -> u64 {
    for n in 0..256u32 {
        core::hint::black_box(n);
    }
    0
}

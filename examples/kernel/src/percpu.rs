//! Per-CPU memory: APIC ids, and two lines through which the boot CPU and CPU `n` talk.
//!
//! What the boot CPU writes and what CPU `n` writes are on different 128-byte lines, and both sides use plain loads and stores:
//! an AP before its sync may have its MTRRs off, and must not execute locked instructions.

use crate::racy::Racy;
use crate::regs::RegFile;
use core::arch::asm;
use core::sync::atomic::AtomicU32;
use mtrr_pat::error::Error;
use x86_64::VirtAddr;
use x86_64::registers::model_specific::GsBase;

pub const MAX_CPUS: usize = 256;

// The entry code (`trampoline.s`) finds these two by name.
/// APIC id by CPU number.
#[unsafe(no_mangle)]
static APIC_IDS: Racy<[u32; MAX_CPUS]> = Racy::new([0; MAX_CPUS]);
/// CPUs listed in `APIC_IDS`.
#[unsafe(no_mangle)]
static CPU_COUNT: Racy<u32> = Racy::new(0);

/// Line that CPU `n` writes.
#[repr(C, align(128))]
pub struct Slot {
    /// Read through GS by `this`.
    number: Racy<usize>,
    /// How far the CPU has come since its last start: one of the constants below.
    pub phase: AtomicU32,
    /// Sequence number of the last request carried out.
    pub done: AtomicU32,
    /// Registers before the crate's work, and when asked for.
    pub before: Racy<RegFile>,
    pub after: Racy<RegFile>,
    /// What the crate complained about to this CPU.
    pub error: Racy<Option<Error>>,
}

pub const ABSENT: u32 = 0;
pub const ARRIVED: u32 = 1;
pub const ONLINE: u32 = 2;
pub const PARKED: u32 = 3;

/// Line that the boot CPU writes.
#[repr(C, align(128))]
pub struct Mail {
    /// 1 once the CPU has shown up and may go on with its bring-up.
    pub go: AtomicU32,
    /// What to do, and the number of the request.
    pub request: AtomicU32,
    pub sequence: AtomicU32,
}

pub static SLOTS: [Slot; MAX_CPUS] = [const {
    Slot {
        number: Racy::new(0),
        phase: AtomicU32::new(ABSENT),
        done: AtomicU32::new(0),
        before: Racy::new(RegFile::EMPTY),
        after: Racy::new(RegFile::EMPTY),
        error: Racy::new(None),
    }
}; MAX_CPUS];

pub static MAIL: [Mail; MAX_CPUS] = [const {
    Mail {
        go: AtomicU32::new(0),
        request: AtomicU32::new(0),
        sequence: AtomicU32::new(0),
    }
}; MAX_CPUS];

/// Lists a CPU; numbers go up from 0, the boot CPU. False when the table is full.
pub fn add(apic_id: u32) -> bool {
    let n = count();
    if n == MAX_CPUS {
        return false;
    }
    // SAFETY: only the boot CPU runs while CPUs are listed.
    unsafe { (*APIC_IDS.get())[n] = apic_id };
    // SAFETY: likewise.
    unsafe { *SLOTS[n].number.get() = n };
    // SAFETY: likewise.
    unsafe { *CPU_COUNT.get() = n as u32 + 1 };
    true
}

/// Forgets all CPUs but the first `keep`.
pub fn limit(keep: usize) {
    // SAFETY: only the boot CPU runs while CPUs are listed.
    unsafe { *CPU_COUNT.get() = count().min(keep.max(1)) as u32 };
}

pub fn count() -> usize {
    // SAFETY: written only by `add` and `limit`, before any AP runs.
    unsafe { *CPU_COUNT.get() as usize }
}

pub fn apic_id(n: usize) -> u32 {
    // SAFETY: as for `count`.
    unsafe { (*APIC_IDS.get())[n] }
}

/// Makes the calling CPU number `n`; after each reset of that CPU.
pub fn adopt(n: usize) {
    GsBase::write(VirtAddr::from_ptr(&SLOTS[n]));
}

/// Number of the calling CPU.
pub fn this() -> usize {
    let n: usize;
    // SAFETY: `adopt` pointed GS at a slot, whose first word is the number.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) n, options(nostack, pure, readonly, preserves_flags))
    };
    n
}

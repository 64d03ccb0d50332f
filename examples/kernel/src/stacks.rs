//! The stacks of every CPU, and how much of them was ever used.
//!
//! Stacks are filled with a pattern before their CPU starts; what no longer holds it was used. That includes every interrupt frame,
//! which is what a kernel author wants to know who has to choose a stack size for an AP.

use crate::caching::BOOT;
use crate::percpu::MAX_CPUS;
use crate::racy::Racy;
use core::arch::asm;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// Stack that a CPU's own code runs on. The boot CPU's has room for two layout edits and a plan; an AP needs a quarter.
const OWN: usize = 96 * 1024;
/// Interrupt stacks, by IST slot of `tables.rs`: kick (runs the crate), #GP fixup, NMI, fatal (prints).
const INTERRUPT: [usize; 4] = [48 * 1024, 4096, 4096, 8 * 1024];
/// Left alone below the stack pointer of the CPU that paints its own stack.
const MARGIN: usize = 256;
const INTERRUPT_TOTAL: usize = INTERRUPT[0] + INTERRUPT[1] + INTERRUPT[2] + INTERRUPT[3];

/// Of the boot CPU: what was in use before its stack was last painted, and by calls of the library.
static MOST: AtomicUsize = AtomicUsize::new(0);
static LIBRARY: AtomicUsize = AtomicUsize::new(0);

const PATTERN: u64 = 0x5a5a_a5a5_5a5a_a5a5;

#[repr(C, align(4096))]
struct Stacks<const BYTES: usize>([Racy<MaybeUninit<[u8; BYTES]>>; MAX_CPUS]);

// The entry code (`boot.s`, `trampoline.s`) finds these two by name.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".stacks")]
static STACKS: Stacks<OWN> = Stacks([const { Racy::new(MaybeUninit::zeroed()) }; MAX_CPUS]);
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "an assembler symbol")]
static stack_bytes: u64 = OWN as u64;

#[unsafe(link_section = ".stacks")]
static INTERRUPT_STACKS: Stacks<INTERRUPT_TOTAL> =
    Stacks([const { Racy::new(MaybeUninit::zeroed()) }; MAX_CPUS]);

/// Top of the stack for interrupt stack slot `slot` of CPU `n`.
pub fn interrupt_top(n: usize, slot: u16) -> usize {
    let below: usize = INTERRUPT[..=usize::from(slot)].iter().sum();
    INTERRUPT_STACKS.0[n].get() as usize + below
}

/// Fills the stacks of all CPUs with the pattern, the calling boot CPU's (number 0) as far as it is not in use.
///
/// # Safety
/// Once per boot, while no AP runs.
pub unsafe fn paint(count: usize) {
    for n in 0..count {
        let (bottom, bytes) = own(n);
        let top = if n == 0 { in_use() } else { bottom + bytes };
        // SAFETY: inside a stack that nobody uses, or below what is in use.
        unsafe { fill(bottom, top) };
        let (bottom, bytes) = kick(n);
        // SAFETY: likewise.
        unsafe { fill(bottom, bottom + bytes) };
    }
}

/// Where the calling boot CPU's stack is free below, a margin left.
fn in_use() -> usize {
    let stack_pointer: usize;
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {}, rsp", out(reg) stack_pointer, options(nomem, nostack, preserves_flags))
    };
    (stack_pointer - MARGIN) & !7
}

/// # Safety
/// Nobody uses this part of a stack.
unsafe fn fill(bottom: usize, top: usize) {
    for at in (bottom..top).step_by(8) {
        // SAFETY: as the caller says.
        unsafe { (at as *mut u64).write_volatile(PATTERN) };
    }
}

/// Runs a call of the library on the boot CPU, and notes how much stack it takes, a logger's share included.
pub fn noted<R>(call: impl FnOnce() -> R) -> R {
    MOST.fetch_max(used(BOOT)[0], Relaxed);
    let (bottom, bytes) = own(BOOT);
    let top = in_use();
    // SAFETY: below what is in use; interrupts run on stacks of their own.
    unsafe { fill(bottom, top) };
    let result = call();
    let taken = (used(BOOT)[0] + top + MARGIN).saturating_sub(bottom + bytes);
    LIBRARY.fetch_max(taken, Relaxed);
    result
}

/// Most bytes of its stack that the boot CPU has had in use, and that calls of the library have taken.
pub fn boot_cpu() -> [usize; 2] {
    let most = MOST.load(Relaxed).max(used(BOOT)[0]);
    [most, LIBRARY.load(Relaxed)]
}

/// Whether one of the stacks of CPU `n` was used up to its last word: then it was overrun, most likely.
pub fn exhausted(n: usize) -> bool {
    let [own, kick] = used(n);
    own >= OWN || kick >= INTERRUPT[0]
}

/// Most bytes that CPU `n` has had in use on its own stack and on its kick stack, since `paint`.
pub fn used(n: usize) -> [usize; 2] {
    [own(n), kick(n)].map(|(bottom, bytes)| {
        // SAFETY: a read of words that their owner may be writing: at worst off by the last frame.
        let untouched = (bottom..bottom + bytes)
            .step_by(8)
            .take_while(|&at| unsafe { (at as *const u64).read_volatile() } == PATTERN);
        bytes - 8 * untouched.count()
    })
}

fn own(n: usize) -> (usize, usize) {
    (STACKS.0[n].get() as usize, OWN)
}

fn kick(n: usize) -> (usize, usize) {
    (INTERRUPT_STACKS.0[n].get() as usize, INTERRUPT[0])
}

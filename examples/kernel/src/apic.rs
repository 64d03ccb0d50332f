//! The local APIC of the calling CPU.

use crate::{percpu, traps};
use core::arch::asm;
use x2apic::lapic::{LocalApic, LocalApicBuilder, TimerMode, xapic_base};

/// A handle on the calling CPU's APIC: its registers are at the same place on every CPU, so it is built where it is used.
fn local() -> LocalApic {
    // SAFETY: reads IA32_APIC_BASE, which every 64-bit CPU has.
    let base = unsafe { xapic_base() };
    let built = LocalApicBuilder::new()
        .timer_vector(usize::from(traps::TIMER))
        .error_vector(usize::from(traps::ERROR))
        .spurious_vector(usize::from(traps::SPURIOUS))
        .timer_mode(TimerMode::OneShot)
        .timer_initial(0)
        .set_xapic_base(base)
        .build();
    match built {
        Ok(apic) => apic,
        Err(reason) => panic!("local APIC: {reason}"),
    }
}

/// Enables the calling CPU's APIC, so that kicks reach it; after every reset of the CPU.
pub fn enable() {
    let mut apic = local();
    // SAFETY: the vectors have gates; interrupts are off; the registers are mapped uncached (`boot.s`).
    unsafe { apic.enable() };
    // SAFETY: likewise. `enable` leaves the timer open, which this kernel does not use.
    unsafe { apic.disable_timer() };
}

pub fn end_of_interrupt() {
    // SAFETY: called from an interrupt handler.
    unsafe { local().end_of_interrupt() };
}

/// In x2APIC mode the destination is the id; in xAPIC mode the id sits in the top byte of the register.
fn destination(n: usize) -> u32 {
    let id = percpu::apic_id(n);
    if is_x2apic() { id } else { id << 24 }
}

/// `LocalApicBuilder` chooses by the same CPUID bit.
fn is_x2apic() -> bool {
    core::arch::x86_64::__cpuid(1).ecx & (1 << 21) != 0
}

/// The write of an x2APIC's ICR is not ordered after earlier stores: without the fences the interrupt may arrive before
/// what it is about. In xAPIC mode the write is a store, and comes after earlier ones by itself.
fn send(n: usize, write: impl FnOnce(&mut LocalApic, u32)) {
    let mut apic = local();
    // SAFETY: fences change nothing.
    unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) };
    write(&mut apic, destination(n));
    if !is_x2apic() {
        // The interrupt command register takes the next command only when the last one has left.
        // SAFETY: reads a register.
        while unsafe { apic.get_ipi_delivery_status() } {
            core::hint::spin_loop();
        }
    }
}

/// Interrupts CPU `n` with the kick vector.
pub fn kick(n: usize) {
    // SAFETY: the vector has a gate on every CPU whose APIC is enabled.
    send(n, |apic, to| unsafe { apic.send_ipi(traps::KICK, to) });
}

/// Resets CPU `n` to wait for its start-up IPI.
pub fn send_init(n: usize) {
    // SAFETY: the caller does this only to a CPU that runs nothing.
    send(n, |apic, to| unsafe { apic.send_init_ipi(to) });
}

/// Starts CPU `n` in real mode at `page << 12`.
pub fn send_startup(n: usize, page: u8) {
    // SAFETY: the trampoline is there.
    send(n, |apic, to| unsafe { apic.send_sipi(page, to) });
}

//! ACPI S3, for real: the machine loses power but for its memory, and the firmware jumps to the trampoline when it wakes.

use crate::firmware::Firmware;
use crate::options::Wake;
use crate::racy::Racy;
use crate::{clock, pci, rtc, smp};
use core::arch::asm;
use x86_64::instructions::port::Port;

const SCI_EN: u16 = 1 << 0;
const SLP_TYP_SHIFT: u32 = 10;
const SLP_TYP: u16 = 7 << SLP_TYP_SHIFT;
const SLP_EN: u16 = 1 << 13;
/// The same bit in the PM1 status and enable registers.
const RTC: u16 = 1 << 10;
const WAK_STS: u16 = 1 << 15;

/// After which the clock wakes the machine: more than a PC takes to fall asleep.
const ALARM_SECONDS: u8 = 2;

/// FACS offsets: firmware waking vector (32 bits, real mode), and the 64-bit one, which must be 0 for the first to count.
const FACS_WAKING_VECTOR: usize = 12;
const FACS_X_WAKING_VECTOR: usize = 24;

unsafe extern "C" {
    /// In `trampoline.s`.
    fn s3_sleep(enter: extern "C" fn()) -> u64;
}

/// The two control writes that `enter` makes, as (port, value) pairs; port 0 for none.
static CONTROL: Racy<[(u16, u16); 2]> = Racy::new([(0, 0); 2]);

/// Sleeps. Returns after the wake, on the boot CPU, with interrupts off; everything outside memory is as the firmware left it.
///
/// APs must be parked. False when the machine refused to sleep.
pub fn suspend(firmware: &Firmware, wake: Wake) -> bool {
    let Some(types) = firmware.s3 else {
        return false;
    };
    smp::install_trampoline();
    set_waking_vector(firmware.facs);
    take_over_from_firmware(firmware);
    arm(firmware, wake);
    let bridge = pci::save_power_registers();
    // SAFETY: only the boot CPU runs.
    unsafe {
        *CONTROL.get() = [
            (
                firmware.pm1a_control,
                control_value(firmware.pm1a_control, types[0]),
            ),
            (
                firmware.pm1b_control,
                control_value(firmware.pm1b_control, types[1]),
            ),
        ];
    }
    // SAFETY: the waking vector leads to `s3_woken`, which returns here on this stack.
    let woken = unsafe { s3_sleep(enter) } == 1;
    bridge.restore();
    woken
}

/// Clears what woke the machine, so that it can sleep again. After the wake, once the ports answer.
pub fn acknowledge_wake(firmware: &Firmware, wake: Wake) {
    if wake == Wake::Rtc {
        rtc::disarm();
    }
    arm(firmware, Wake::Outside);
}

extern "C" fn enter() {
    // SAFETY: written by `suspend`, just before.
    let control = unsafe { *CONTROL.get() };
    // The caches lose power too.
    // SAFETY: WBINVD changes no memory contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
    for enable in [0, SLP_EN] {
        for (port, value) in control {
            if port != 0 {
                // SAFETY: the port of the PM1 control block; the type of sleep first, then the order, as the specification asks.
                unsafe { Port::new(port).write(value | enable) };
            }
        }
    }
    // The machine may run on for a moment. Coming back from here means it did not sleep.
    clock::delay(2_000_000);
}

fn set_waking_vector(facs: usize) {
    // SAFETY: the FACS is memory that the tables set aside for exactly this.
    unsafe { ((facs + FACS_WAKING_VECTOR) as *mut u32).write_volatile(smp::TRAMPOLINE as u32) };
    // SAFETY: likewise.
    unsafe { ((facs + FACS_X_WAKING_VECTOR) as *mut u64).write_volatile(0) };
}

/// Puts the fixed hardware into ACPI mode, if the firmware (still, or again after S3) runs it.
fn take_over_from_firmware(firmware: &Firmware) {
    let mut control = Port::<u16>::new(firmware.pm1a_control);
    // SAFETY: reading the control register has no side effect.
    let mut enabled = || unsafe { control.read() } & SCI_EN != 0;
    if enabled() || firmware.smi_command == 0 {
        return;
    }
    // SAFETY: the value and port that the FADT gives for it.
    unsafe { Port::<u8>::new(firmware.smi_command).write(firmware.acpi_enable) };
    clock::wait_until(1_000_000, enabled);
}

/// Clears the event status (by writing ones) and opens the wake events asked for.
fn arm(firmware: &Firmware, wake: Wake) {
    if firmware.pm1a_event == 0 {
        return;
    }
    let mut enable = Port::<u16>::new(firmware.pm1a_event + firmware.pm1_event_bytes / 2);
    if wake == Wake::Rtc {
        rtc::alarm_in(ALARM_SECONDS);
    }
    // SAFETY: PM1 status register; ones clear.
    unsafe { Port::<u16>::new(firmware.pm1a_event).write(WAK_STS | RTC | 0x0731) };
    // SAFETY: PM1 enable register.
    unsafe { enable.write(if wake == Wake::Rtc { RTC } else { 0 }) };
}

fn control_value(port: u16, kind: u8) -> u16 {
    if port == 0 {
        return 0;
    }
    // SAFETY: reading the control register has no side effect.
    let old = unsafe { Port::<u16>::new(port).read() };
    (old & !(SLP_TYP | SLP_EN)) | (u16::from(kind) << SLP_TYP_SHIFT)
}

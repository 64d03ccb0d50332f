//! Ending the run with a code that a script can see.

use core::arch::asm;
use x86_64::instructions::{hlt, interrupts, port::Port};

/// QEMU's `isa-debug-exit` at 0xf4 makes `(value << 1) | 1` its exit code.
const DEBUG_EXIT: u16 = 0xf4;

/// Exit code 33.
pub fn success() -> ! {
    leave(0x10)
}

/// Exit code 35.
pub fn failure() -> ! {
    leave(0x11)
}

/// Restarts the machine without switching it off, so that memory may keep what is in it. `reset` is the port and value that the ACPI
/// tables give for it.
pub fn restart(reset: Option<(u16, u8)>) -> ! {
    interrupts::disable();
    // What is only in a cache is lost at a reset.
    // SAFETY: WBINVD changes no memory contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
    // The tables' way, then the chipset's reset register (hard reset, power stays), then the keyboard controller's pulse.
    for (port, value) in reset
        .into_iter()
        .chain([(0xcf9, 0x02), (0xcf9, 0x06), (0x64, 0xfe)])
    {
        // SAFETY: all that can come of it is the reset.
        unsafe { Port::new(port).write(value) };
        crate::clock::delay(100_000);
    }
    panic!("the machine does not restart: switch it off and on")
}

fn leave(value: u32) -> ! {
    crate::console::drain();
    // SAFETY: on a machine without the device this port is unused.
    unsafe { Port::<u32>::new(DEBUG_EXIT).write(value) };
    // Bochs ends its run when it reads this word here.
    for &byte in b"Shutdown" {
        // SAFETY: as above.
        unsafe { Port::<u8>::new(0x8900).write(byte) };
    }
    loop {
        interrupts::disable();
        hlt();
    }
}

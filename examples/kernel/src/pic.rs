//! The legacy interrupt controllers, silenced: this kernel takes interrupts from the local APIC alone.

use x86_64::instructions::port::Port;

/// Masks every line of both; after boot and after S3.
pub fn mask_all() {
    for port in [0x21, 0xa1] {
        // SAFETY: the interrupt mask registers.
        unsafe { Port::<u8>::new(port).write(0xff) };
    }
}

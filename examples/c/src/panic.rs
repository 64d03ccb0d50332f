//! What happens where the library has a bug.

use core::ffi::c_char;
use core::fmt::{self, Write};
use core::panic::PanicInfo;

// What happens if the kernel has no `mtrr_pat_panic` of its own: this CPU halts.
core::arch::global_asm!(
    ".pushsection .text.mtrr_pat_panic, \"ax\", @progbits",
    ".weak mtrr_pat_panic",
    ".type mtrr_pat_panic, @function",
    "mtrr_pat_panic:",
    "cli",
    "hlt",
    "jmp mtrr_pat_panic",
    ".size mtrr_pat_panic, . - mtrr_pat_panic",
    ".popsection",
);

unsafe extern "C" {
    /// The kernel's, where it has one: it is told of a bug in this library, as `length` bytes of text, on
    /// the CPU and with the interrupts it happened with, and does not return. Without it that CPU halts.
    fn mtrr_pat_panic(text: *const c_char, length: usize) -> !;
}

/// As much of the message as there is room for.
struct Message {
    text: [u8; 256],
    used: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let place = self.text.get_mut(self.used).ok_or(fmt::Error)?;
            *place = byte;
            self.used += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    let mut message = Message {
        text: [0; 256],
        used: 0,
    };
    let _ = write!(message, "{info}"); // cut off where it is too long
    // SAFETY: the text is there, with that length.
    unsafe { mtrr_pat_panic(message.text.as_ptr().cast(), message.used) }
}

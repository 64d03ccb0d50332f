//! The keyboard behind an i8042, or what firmware makes look like one: was a key pressed, and the three lights.
//!
//! Polled, and without a driver crate: those there are want interrupts or a decoder, and all that is asked here is "any key". Many
//! machines have no such keyboard once a kernel runs (USB under UEFI): then there is none, and nothing waits for it.

use crate::clock;
use x86_64::instructions::port::Port;

const DATA: u16 = 0x60;
const STATUS: u16 = 0x64;
const OUTPUT_FULL: u8 = 1 << 0;
const INPUT_FULL: u8 = 1 << 1;
const FROM_MOUSE: u8 = 1 << 5;
/// What a port gives that nobody answers.
const NOBODY: u8 = 0xff;
const SET_LIGHTS: u8 = 0xed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Escape,
    /// Page up, cursor left, backspace.
    Back,
    Other,
}

/// The key that was pressed, if one was since the last call.
pub fn pressed() -> Option<Key> {
    // One byte a turn; a few, so that a release does not hide the next key.
    (0..8).find_map(|_| match read()? {
        0x01 => Some(Key::Escape),
        0x0e | 0x49 | 0x4b => Some(Key::Back),
        0x02..=0x58 => Some(Key::Other),
        _ => None, // a release, a prefix, an answer
    })
}

/// The next byte from the keyboard.
fn read() -> Option<u8> {
    let status = status();
    if status == NOBODY || status & OUTPUT_FULL == 0 {
        return None;
    }
    // SAFETY: takes the byte that is there.
    let byte = unsafe { Port::<u8>::new(DATA).read() };
    // From the mouse: nothing of ours, but something was there.
    Some(if status & FROM_MOUSE == 0 { byte } else { 0 })
}

/// Scroll, Num and Caps lock lights, bits 0 to 2. Without a keyboard, nothing.
pub fn lights(which: u8) {
    for byte in [SET_LIGHTS, which & 7] {
        let free = || status() != NOBODY && status() & INPUT_FULL == 0;
        if !clock::wait_until(20_000, free) {
            return;
        }
        // SAFETY: a command of the keyboard that changes its lights alone, and its argument.
        unsafe { Port::<u8>::new(DATA).write(byte) };
        clock::wait_until(20_000, || read().is_some()); // its acknowledgement
    }
}

fn status() -> u8 {
    // SAFETY: reading the status has no side effect.
    unsafe { Port::<u8>::new(STATUS).read() }
}

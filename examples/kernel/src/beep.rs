//! The PC speaker: for somebody whose screen stays dark.

use crate::clock;
use x86_64::instructions::port::Port;

const PIT_HZ: u32 = 1_193_182;
const TONE_HZ: u32 = 880;

/// Sounds for `us` microseconds. A machine without a speaker stays silent for as long.
pub fn beep(us: u64) {
    let divisor = (PIT_HZ / TONE_HZ) as u16;
    // SAFETY: timer 2 drives the speaker and nothing else: low byte, high byte, square wave.
    unsafe { Port::<u8>::new(0x43).write(0xb6) };
    for byte in divisor.to_le_bytes() {
        // SAFETY: likewise.
        unsafe { Port::<u8>::new(0x42).write(byte) };
    }
    let mut control = Port::<u8>::new(0x61);
    // SAFETY: reads the control port.
    let before = unsafe { control.read() } & !3;
    // SAFETY: bits 0 and 1 let timer 2 through to the speaker.
    unsafe { control.write(before | 3) };
    clock::delay(us);
    // SAFETY: as it was, silent.
    unsafe { control.write(before) };
}

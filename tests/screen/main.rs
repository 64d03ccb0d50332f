//! What the kernel of `examples/kernel` shows somebody who sits before a PC: pages on a picture (BIOS and UEFI) and on a text screen,
//! keys, the sleep, the signals after it, the restart that brings the account back, and the QR codes as `inspect` reads them.
//!
//! The kernel writes what it shows to the serial port too. The pages are drawn here once more, by the same code for another surface,
//! and compared with the picture on the screen, point by point; codes are read with a decoder that is not the kernel's.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]

#[path = "../../examples/kernel/src/screen/draw.rs"]
#[allow(dead_code)]
mod draw;
#[path = "../../examples/inspect/main.rs"]
mod inspect;
#[path = "../vm/mod.rs"]
#[allow(dead_code)]
mod vm;

mod life;
mod picture;
mod shown;
mod watched;

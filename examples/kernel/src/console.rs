//! Serial output on COM1, for the boot CPU (and for whoever panics).

use crate::racy::Racy;
use core::fmt::{self, Write};
use uart_16550::backend::PioBackend;
use uart_16550::{BaudRate, Config, Uart16550};
use x86_64::instructions::port::Port;

const COM1: u16 = 0x3f8;

static UART: Racy<Option<Uart16550<PioBackend>>> = Racy::new(None);

/// Sets COM1 up; again after S3, which resets it. A machine without one stays silent.
pub fn init() {
    // SAFETY: COM1's ports belong to nobody else in this kernel.
    let Ok(mut uart) = (unsafe { Uart16550::new_port(COM1) }) else {
        return;
    };
    let config = Config {
        baud_rate: BaudRate::Baud115200,
        ..Config::DEFAULT
    };
    let present = uart.init(config).is_ok();
    // SAFETY: only the boot CPU calls this, when no AP prints.
    unsafe { *UART.get() = present.then_some(uart) };
}

/// Waits until the last byte is out, at most as long as a FIFO takes: an emulator that is told to end does not.
pub fn drain() {
    const LINE_STATUS: u16 = COM1 + 5;
    const ALL_SENT: u8 = 1 << 6;
    crate::clock::wait_until(20_000, || {
        // SAFETY: reads a status register of the port that is this module's.
        unsafe { Port::<u8>::new(LINE_STATUS).read() & ALL_SENT != 0 }
    });
}

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: only the boot CPU prints; a panic elsewhere may garble a line, which is better than silence.
        if let Some(uart) = unsafe { &mut *UART.get() } {
            for part in text.split_inclusive('\n') {
                match part.strip_suffix('\n') {
                    Some(line) => {
                        uart.send_bytes_exact(line.as_bytes());
                        uart.send_bytes_exact(b"\r\n");
                    }
                    None => uart.send_bytes_exact(part.as_bytes()),
                }
            }
        }
        Ok(())
    }
}

/// What `print!` and `println!` expand to.
pub fn print(text: fmt::Arguments) {
    let _ = Serial.write_fmt(text);
}

#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::console::print(format_args!($($text)*)) };
}

#[macro_export]
macro_rules! println {
    ($($text:tt)*) => {{ $crate::print!($($text)*); $crate::print!("\n"); }};
}

/// Says why this kernel cannot go on, to everybody who may listen.
pub fn stop(why: fmt::Arguments) -> ! {
    println!("{why}");
    crate::screen::stopped(why);
    crate::exit::failure()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    stop(format_args!("PANIC {info}"))
}

//! The CMOS clock's alarm: a wake-up that needs nobody outside.

use x86_64::instructions::port::Port;

const SECONDS: u8 = 0x00;
const SECONDS_ALARM: u8 = 0x01;
const MINUTES_ALARM: u8 = 0x03;
const HOURS_ALARM: u8 = 0x05;
const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;
const STATUS_C: u8 = 0x0c;
const UPDATING: u8 = 1 << 7;
const ALARM_ENABLE: u8 = 1 << 5;
const BINARY: u8 = 1 << 2;
/// In an alarm register: any value matches.
const ANY: u8 = 0xc0;

/// Less than a minute from now.
pub fn alarm_in(seconds: u8) {
    while read(STATUS_A) & UPDATING != 0 {}
    let control = read(STATUS_B);
    let now = read(SECONDS);
    let alarm = if control & BINARY != 0 {
        (now + seconds) % 60
    } else {
        to_bcd((from_bcd(now) + seconds) % 60)
    };
    write(SECONDS_ALARM, alarm);
    write(MINUTES_ALARM, ANY);
    write(HOURS_ALARM, ANY);
    read(STATUS_C); // drops an alarm that is still pending
    write(STATUS_B, control | ALARM_ENABLE);
}

pub fn disarm() {
    write(STATUS_B, read(STATUS_B) & !ALARM_ENABLE);
    read(STATUS_C);
}

fn from_bcd(value: u8) -> u8 {
    (value >> 4) * 10 + (value & 0xf)
}

fn to_bcd(value: u8) -> u8 {
    ((value / 10) << 4) | (value % 10)
}

fn read(register: u8) -> u8 {
    // SAFETY: 0x70 selects a CMOS register; only the boot CPU uses the pair.
    unsafe { Port::<u8>::new(0x70).write(register) };
    // SAFETY: reads the selected register.
    unsafe { Port::<u8>::new(0x71).read() }
}

fn write(register: u8, value: u8) {
    // SAFETY: as in `read`.
    unsafe { Port::<u8>::new(0x70).write(register) };
    // SAFETY: one of the clock's alarm or control registers.
    unsafe { Port::<u8>::new(0x71).write(value) };
}

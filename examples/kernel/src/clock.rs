//! Time: the TSC, calibrated against the ACPI power-management timer, which every machine that can do S3 has.

use crate::racy::Racy;
use core::arch::x86_64::_rdtsc;
use x86_64::instructions::port::Port;

const PM_TIMER_HZ: u64 = 3_579_545;

/// TSC ticks per microsecond.
static TICKS_PER_US: Racy<u64> = Racy::new(1000);

pub fn now() -> u64 {
    // SAFETY: reading the TSC has no side effect.
    unsafe { _rdtsc() }
}

/// TSC ticks in `us` microseconds.
pub fn ticks(us: u64) -> u64 {
    // SAFETY: written once, by `calibrate`, before any AP runs.
    us * unsafe { *TICKS_PER_US.get() }
}

/// Measures the TSC for 10 ms.
pub fn calibrate(pm_timer: u16) {
    let mut port = Port::<u32>::new(pm_timer);
    // SAFETY: reading the timer has no side effect. 24 bits are there on every machine.
    let mut read = move || unsafe { port.read() } & 0xff_ffff;
    let wanted = (PM_TIMER_HZ / 100) as u32;
    let (start, tsc) = (read(), now());
    let mut elapsed = 0;
    while elapsed < wanted {
        elapsed = read().wrapping_sub(start) & 0xff_ffff;
    }
    let per_us = (now() - tsc) * PM_TIMER_HZ / u64::from(elapsed) / 1_000_000;
    // SAFETY: no AP runs yet.
    unsafe { *TICKS_PER_US.get() = per_us.max(1) };
}

/// Polls `done` for at most `us` microseconds; true as soon as it is.
pub fn wait_until(us: u64, mut done: impl FnMut() -> bool) -> bool {
    let (start, limit) = (now(), ticks(us));
    loop {
        if done() {
            return true;
        }
        // Wrapping: on some machines the TSC starts again at an S3 wake.
        if now().wrapping_sub(start) > limit {
            return done();
        }
        core::hint::spin_loop();
    }
}

pub fn delay(us: u64) {
    wait_until(us, || false);
}

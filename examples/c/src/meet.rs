//! The rendezvous: all CPUs meet, compare, and act.

use core::ffi::c_void;

use crate::code::mtrr_pat_code;
use crate::info::{answer, mtrr_pat_info};
use crate::life::{call, mtrr_pat_kick};
use crate::{SYNC, this_cpu};

/// Stands still for a sibling whose caches are off, and takes part in the rendezvous that is open, if it
/// wants this CPU; returns at once otherwise. All that the handler of the kick interrupt has to do, its
/// EOI before or after; or in any loop this CPU waits in.
///
/// CPU: any, `me` its number. Interrupts: masked while it takes part. `info->attendance` says how it
/// went; NULL costs least.
///
/// Returns OK; or this CPU did not take part, or not to the end: the next rendezvous brings it in line.
///
/// # Safety
/// The duties of this library on this CPU; `me` is its own number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_attend(
    me: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(SYNC.attend(&mut cpu, me), info)
}

/// Stands still for as long as a sibling has its caches off, or asks to; returns at once otherwise. In
/// every wait loop of the bring-up that does not call `mtrr_pat_attend`.
///
/// CPU: any, `me` its number. Interrupts: masked while it is held. Returns OK; SIBLING_STUCK: this CPU
/// goes on, with the caches of its core off.
///
/// # Safety
/// As for `mtrr_pat_attend`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_hold_point(
    me: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(SYNC.hold_point(&mut cpu, me), info)
}

/// Has every running CPU meet, and brings those in line that differ from the target: that checked in,
/// were postponed, failed, or were written to since.
///
/// CPU: the boot CPU `me`, when all APs are `MTRR_PAT_RUNNING`. Interrupts: masked throughout. `kick`
/// goes to every other CPU, once more to the late ones.
///
/// Returns OK when every CPU is in line; OUT_OF_SYNC (`info->done` 1): the report says which are not and
/// why. MISSING: nothing was changed, stop those and `mtrr_pat_offline`, then again. STUCK: the others
/// did it.
///
/// # Safety
/// As for `mtrr_pat_attend`; `kick` is what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_resync(
    me: usize,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(
        SYNC.resync(&mut cpu, me, |other| call(kick, other, context)),
        info,
    )
}

/// Has every running CPU meet and compare, and changes nothing. As `mtrr_pat_resync` otherwise.
///
/// # Safety
/// As for `mtrr_pat_resync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_check(
    me: usize,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(
        SYNC.check(&mut cpu, me, |other| call(kick, other, context)),
        info,
    )
}

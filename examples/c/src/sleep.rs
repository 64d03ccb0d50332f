//! S3.

use mtrr_pat::sync::Saved;

use crate::code::mtrr_pat_code::{self, MTRR_PAT_OK};
use crate::info::{Answer, Out, answer, mtrr_pat_info};
use crate::{SYNC, this_cpu};

impl Answer for Saved {
    fn put(&self, info: Out<'_>) -> mtrr_pat_code {
        if let Some(info) = info {
            info.epoch = self.epoch;
            info.changes = u32::from(self.changes.bits());
            info.say(self);
        }
        MTRR_PAT_OK
    }
}

/// Before the machine sleeps: takes over what was written to the boot CPU's registers behind this
/// library's back (`info->changes`); from now on no CPU starts, and none meet.
///
/// CPU: the boot CPU `me`, after the APs were stopped or are about to be. Interrupts: as they are. Nobody
/// has to be declared offline. Returns OK; else the machine is not suspended.
///
/// # Safety
/// The duties of this library on this CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_suspend(
    me: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(SYNC.suspend(&mut cpu, me), info)
}

/// The machine did not sleep: takes `mtrr_pat_suspend` back. Any CPU, interrupts as they are. Returns OK
/// or NOT_SUSPENDED.
#[unsafe(no_mangle)]
pub extern "C" fn mtrr_pat_suspend_aborted(info: Option<&mut mtrr_pat_info>) -> mtrr_pat_code {
    answer(SYNC.suspend_aborted(), info)
}

/// Gives the boot CPU back what S3 took. All other CPUs are absent then: `mtrr_pat_starting` and so on,
/// as at boot.
///
/// CPU: the boot CPU `me`, first thing after the wake, before anything relies on caches or on the PAT.
/// Interrupts: as they are. Returns OK; with `info->done` 0 nothing was done, with 1 this CPU's registers
/// refuse.
///
/// # Safety
/// The other CPUs execute nothing, but a wait for their SIPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_boot_resume(
    me: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    // SAFETY: the caller's promise.
    answer(unsafe { SYNC.boot_resume(&mut cpu, me) }, info)
}

//! From boot to running CPUs, and the way out.

use core::ffi::{CStr, c_char, c_void};
use core::num::NonZeroU64;

use mtrr_pat::cpu::native::catching;
use mtrr_pat::policy::{Policy, PolicyError};
use mtrr_pat::rendezvous::CpuState;
use mtrr_pat::topology::Place;

use crate::code::mtrr_pat_code;
use crate::info::{answer, mtrr_pat_info};
use crate::{SYNC, this_cpu};

/// Makes CPU `cpu` call `mtrr_pat_attend` soon, by an interrupt; `context` is what the caller gave. It
/// takes no lock that its caller may hold, and returns at once. The write of an x2APIC's ICR needs
/// `mfence; lfence` before it.
pub type mtrr_pat_kick = Option<unsafe extern "C" fn(cpu: usize, context: *mut c_void)>;

/// Where a CPU is in its life.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum mtrr_pat_cpu_state {
    /// Not started, or gone: it executes nothing.
    MTRR_PAT_ABSENT = 0,
    /// Declared before its SIPI; its siblings count it as running.
    MTRR_PAT_STARTING = 1,
    /// Past its `mtrr_pat_ap_online`.
    MTRR_PAT_RUNNING = 2,
    /// Cannot run until it is declared starting again.
    MTRR_PAT_PARKED = 3,
    /// A number that is not below MTRR_PAT_CPUS.
    MTRR_PAT_NO_SUCH_CPU = 4,
}

/// Finds out what the machine can do, takes this CPU's registers as the target for all, and programs the
/// PAT the command line asks for. A machine without MTRRs or PAT is not an error.
///
/// CPU: the boot CPU, whose number is `me` from now on, once, before any AP runs. Interrupts: as they
/// are. Needs: privilege level 0 in 64-bit mode; no vector unit.
///
/// `command_line`: the kernel's, zero-terminated, or NULL: `mtrr_pat=early|deferred`,
/// `pat=linux|keep|..`, `gather=`, `hold=`, `finish=` with times, `nopat`, `nowc`; a later word wins over
/// an earlier one, so what the kernel itself wants is put in front. A word that is mistaken is logged
/// (`mtrr_pat_log_to`), and the rest is taken. `tsc_hz`: ticks of the time-stamp counter in a second, or
/// 0 to take CPUID's word.
///
/// Returns OK; or, with `info->done` 0, why nothing was done; with 1, what is wrong with this CPU's
/// registers.
///
/// # Safety
/// As said; and what is mapped through slots of the PAT may have the types it is given: no RAM through
/// one that becomes WC. `command_line` and `info` point where they say, or are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_boot_init(
    me: usize,
    command_line: *const c_char,
    tsc_hz: u64,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: a zero-terminated string, if it is not NULL.
    let line = (!command_line.is_null()).then(|| unsafe { CStr::from_ptr(command_line) });
    let policy = policy(line.map_or(&[], CStr::to_bytes), tsc_hz);
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    // SAFETY: the caller's promise: no AP runs.
    answer(unsafe { SYNC.boot_init(&mut cpu, me, policy) }, info)
}

/// Words that are not UTF-8 end the line: none of them is ours.
fn policy(line: &[u8], tsc_hz: u64) -> Policy {
    let base = Policy {
        tsc_hz: NonZeroU64::new(tsc_hz),
        ..Policy::DEFAULT
    };
    let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    base.with_command_line(text)
        .unwrap_or_else(PolicyError::warned)
}

/// Declares that CPU `cpu`, with this APIC id (the MADT's, not its UID), is about to get its SIPI.
///
/// CPU: the one, `me`, that sends it; interrupts stay masked from before this call until it is sent. What
/// the kernel wrote for the AP must be visible before the SIPI: an x2APIC's ICR needs `mfence; lfence`.
///
/// Returns OK; anything else: it is not declared, do not start it. BUSY: `mtrr_pat_attend`, and again.
///
/// # Safety
/// As said; the SIPI goes to that CPU, and what later calls with this number is that CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_starting(
    cpu: usize,
    apic_id: u32,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut this = unsafe { this_cpu() };
    let place = Place::Apic(apic_id);
    // SAFETY: the caller's promise: it sits there.
    answer(unsafe { SYNC.starting(&mut this, cpu, place) }, info)
}

/// Brings this AP in line, or checks it in for the rendezvous, as the command line said.
///
/// CPU: AP `me`, first thing after each SIPI, best with CR0.CD as reset left it. Interrupts: masked. It
/// needs no APIC but for `kick`, which asks a sibling to stand still; NULL: a sibling that polls
/// `mtrr_pat_attend` or `mtrr_pat_hold_point` is waited for, and this CPU left to the rendezvous if none
/// answers. Afterwards it takes interrupts, or polls `mtrr_pat_attend`.
///
/// Returns OK; with `info->done` 0: this CPU was not touched, and may have caches off: halt it. With 1 it
/// runs on with the types it came with (or, `info->left` TORN, with none) until `mtrr_pat_resync`.
///
/// # Safety
/// As said; `me` is this CPU's own number; `kick` is what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_ap_online(
    me: usize,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    answer(
        SYNC.ap_online(&mut cpu, me, |other| call(kick, other, context)),
        info,
    )
}

/// Calls a kernel's kick, if it gave one.
pub(crate) fn call(kick: mtrr_pat_kick, cpu: usize, context: *mut c_void) {
    if let Some(kick) = kick {
        // SAFETY: the promise of whoever gave it.
        unsafe { kick(cpu, context) };
    }
}

/// Where CPU `cpu` is in its life. Any CPU, interrupts as they are: for who waits for an AP, and calls
/// `mtrr_pat_hold_point` between looks.
#[unsafe(no_mangle)]
pub extern "C" fn mtrr_pat_state(cpu: usize) -> mtrr_pat_cpu_state {
    match SYNC.state(cpu) {
        Ok(CpuState::Absent) => mtrr_pat_cpu_state::MTRR_PAT_ABSENT,
        Ok(CpuState::Starting) => mtrr_pat_cpu_state::MTRR_PAT_STARTING,
        Ok(CpuState::Running) => mtrr_pat_cpu_state::MTRR_PAT_RUNNING,
        Ok(CpuState::Parked) => mtrr_pat_cpu_state::MTRR_PAT_PARKED,
        Err(_) => mtrr_pat_cpu_state::MTRR_PAT_NO_SUCH_CPU,
    }
}

/// Declares that CPU `cpu` executes nothing any more: it did not come up (send it INIT first, it may be
/// late), or was unplugged: it masked its interrupts, said so, and halted. Afterwards nobody kicks it.
///
/// CPU: any other. Interrupts: as they are. Returns OK, or why it was not declared.
///
/// # Safety
/// It executes nothing until it is declared starting: others turn the caches of its core off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_offline(
    cpu: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    answer(unsafe { SYNC.offline(cpu) }, info)
}

/// As `mtrr_pat_offline`, for a CPU that the kernel stopped on purpose: the report says parked.
///
/// # Safety
/// As for `mtrr_pat_offline`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_parked(
    cpu: usize,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    answer(unsafe { SYNC.parked(cpu) }, info)
}

/// For the kernel's handler of #GP (vector 13), before anything else: where to go on if the fault at
/// `rip` was an MSR access of this library: put it into the saved RIP, leave every register as it was,
/// and IRETQ. 0: any other fault. On any CPU, interrupts as they are; touches no memory but the stack.
#[unsafe(no_mangle)]
pub extern "C" fn mtrr_pat_fixup(rip: u64) -> u64 {
    catching::fixup(rip).unwrap_or(0)
}

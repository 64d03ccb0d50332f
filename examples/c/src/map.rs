//! The target, and other ones.

use core::ffi::c_void;

use mtrr_pat::layout::{Edit, Fitted, Region};
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::regs::{FIXED_COUNT, MAX_VARIABLE, MtrrDefType};
use mtrr_pat::snapshot::Snapshot;

use crate::code::mtrr_pat_code::{self, MTRR_PAT_BAD_ARGUMENT};
use crate::info::{Out, answer, mtrr_pat_info, refused};
use crate::life::{call, mtrr_pat_kick};
use crate::{SYNC, this_cpu};

/// Variable ranges in `struct mtrr_pat_registers`; a machine has fewer.
pub const MTRR_PAT_VARIABLE: usize = 40;
/// Fixed-range registers in `struct mtrr_pat_registers`.
pub const MTRR_PAT_FIXED: usize = 11;

const _: () = assert!(MTRR_PAT_VARIABLE == MAX_VARIABLE && MTRR_PAT_FIXED == FIXED_COUNT);

/// What every CPU is to have: the words of the registers.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct mtrr_pat_registers {
    /// Generation: another one after each change.
    pub epoch: u32,
    /// How many variable ranges the machine has; 0 without MTRRs.
    pub variable_count: u32,
    /// IA32_MTRR_DEF_TYPE.
    pub def_type: u64,
    /// IA32_PAT; 0 where there is none.
    pub pat: u64,
    /// IA32_MTRR_FIX64K_00000, then 16K_80000, 16K_A0000, 4K_C0000 .. 4K_F8000.
    pub fixed: [u64; MTRR_PAT_FIXED],
    /// IA32_MTRR_PHYSBASEn.
    pub base: [u64; MTRR_PAT_VARIABLE],
    /// IA32_MTRR_PHYSMASKn.
    pub mask: [u64; MTRR_PAT_VARIABLE],
}

/// Reads the target. Any CPU, interrupts as they are. Returns OK; TARGET_BUSY: again.
///
/// # Safety
/// `registers` may be written to, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_target(
    registers: Option<&mut mtrr_pat_registers>,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    let target = SYNC.target();
    if let (Ok((epoch, target)), Some(registers)) = (&target, registers) {
        *registers = mtrr_pat_registers {
            epoch: *epoch,
            variable_count: target.variable_count() as u32,
            def_type: target.def_type.raw(),
            pat: target.pat.map_or(0, Pat::raw),
            fixed: target.fixed,
            base: target.variable.map(|pair| pair.base),
            mask: target.variable.map(|pair| pair.mask),
        };
    }
    answer(target.map(|_| ()), info)
}

/// Gives all CPUs other registers, all at once: as `mtrr_pat_target` read them, and edited; or as they
/// were before, to go back. `epoch` and `variable_count` are not looked at.
///
/// CPU: the boot CPU `me`. Interrupts: masked throughout. Returns as `mtrr_pat_resync`; INVALID_TARGET,
/// FOREIGN_TARGET: nothing was changed.
///
/// # Safety
/// As for `mtrr_pat_resync`; and no memory that is in use loses the type it needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_change(
    me: usize,
    registers: Option<&mtrr_pat_registers>,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    let Some(registers) = registers else {
        return refused(MTRR_PAT_BAD_ARGUMENT, &"no registers", info);
    };
    let mut target = match SYNC.target() {
        Ok((_, target)) => target,
        Err(error) => return answer::<()>(Err(error), info),
    };
    target.def_type = MtrrDefType::from_raw(registers.def_type);
    target.pat = target.pat.map(|_| Pat::from_raw(registers.pat));
    target.fixed = registers.fixed;
    let words = registers.base.iter().zip(&registers.mask);
    for (pair, (base, mask)) in target.variable.iter_mut().zip(words) {
        (pair.base, pair.mask) = (*base, *mask);
    }
    // SAFETY: the caller's promise.
    unsafe { change_to(me, &target, kick, context, info) }
}

/// Gives `start` up to, not including, `end` (multiples of 4096) a type by MTRRs, on all CPUs at once:
/// write-combining for a frame buffer. Plans with the fewest registers; all RAM, which ends at
/// `ram_end` (of the firmware's memory map), keeps its types, and so does everything below 4 GiB.
///
/// CPU: the boot CPU `me`. Interrupts: masked while CPUs meet. `type` is MTRR_PAT_UC, WC, WT, WP or WB.
/// Takes up to 32 KiB of stack, before CPUs meet. `info->text` says what it came to.
///
/// Returns as `mtrr_pat_resync`; NO_LAYOUT: nothing was changed, and page tables can do it:
/// `mtrr_pat_page_bits`. To go back: `mtrr_pat_target` before, and `mtrr_pat_change`.
///
/// # Safety
/// As for `mtrr_pat_change`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_set_range(
    me: usize,
    start: u64,
    end: u64,
    r#type: u32,
    ram_end: u64,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    mut info: Option<&mut mtrr_pat_info>,
) -> mtrr_pat_code {
    let memtype = u8::try_from(r#type).map(MemType::from_field);
    let Ok(Ok(memtype)) = memtype else {
        return refused(MTRR_PAT_BAD_ARGUMENT, &"no type of an MTRR", info);
    };
    let now = match SYNC.target() {
        Ok((_, now)) => now,
        Err(error) => return answer::<()>(Err(error), info),
    };
    let fitted = match fit(&now, Region::mmio(start, end, memtype), ram_end) {
        Ok(fitted) => fitted,
        Err(error) => return refused(error.into(), &error, info),
    };
    // SAFETY: the caller's promise.
    let code = unsafe { change_to(me, &fitted.target, kick, context, info.as_deref_mut()) };
    if let (mtrr_pat_code::MTRR_PAT_OK, Some(info)) = (code, info) {
        info.say(&fitted);
    }
    code
}

#[inline(never)] // several KiB of stack, which are free again when CPUs meet
fn fit(
    now: &Snapshot,
    region: Region,
    ram_end: u64,
) -> Result<Fitted, mtrr_pat::layout::LayoutError> {
    let mut edit = Edit::of(now)?;
    edit.ram_end(ram_end);
    edit.set(region)?;
    edit.fit()
}

/// # Safety
/// As for `mtrr_pat_change`.
unsafe fn change_to(
    me: usize,
    target: &Snapshot,
    kick: mtrr_pat_kick,
    context: *mut c_void,
    info: Out<'_>,
) -> mtrr_pat_code {
    // SAFETY: the caller's promise.
    let mut cpu = unsafe { this_cpu() };
    // SAFETY: the caller's promise.
    let changed = unsafe { SYNC.change(&mut cpu, me, target, |other| call(kick, other, context)) };
    answer(changed, info)
}

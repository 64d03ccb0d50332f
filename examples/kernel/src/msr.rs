//! RDMSR and WRMSR that survive #GP.
//!
//! Each instruction has one site in the whole kernel. The #GP handler (`traps.rs`) knows the two addresses: it steps over the
//! instruction and sets the carry flag, which the function returns.

use core::arch::naked_asm;

/// Reads an MSR, or says that the CPU refused.
pub fn read(msr: u32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: the handler below makes a refused read harmless; a read that works changes nothing.
    let refused = unsafe { rdmsr(msr, &mut value) };
    (refused == 0).then_some(value)
}

/// Writes an MSR; false when the CPU refused.
///
/// # Safety
/// What the write does to the machine is the caller's business.
pub unsafe fn write(msr: u32, value: u64) -> bool {
    // SAFETY: as the caller says.
    unsafe { wrmsr(msr, value) == 0 }
}

#[unsafe(naked)]
unsafe extern "C" fn rdmsr(msr: u32, value: &mut u64) -> u8 {
    naked_asm!(
        "mov ecx, edi",
        "xor eax, eax",
        "xor edx, edx",
        "clc",
        ".globl rdmsr_site",
        "rdmsr_site:",
        "rdmsr",
        "setc cl",
        "shl rdx, 32",
        "or rdx, rax",
        "mov [rsi], rdx",
        "movzx eax, cl",
        "ret",
    )
}

#[unsafe(naked)]
unsafe extern "C" fn wrmsr(msr: u32, value: u64) -> u8 {
    naked_asm!(
        "mov ecx, edi",
        "mov eax, esi",
        "mov rdx, rsi",
        "shr rdx, 32",
        "clc",
        ".globl wrmsr_site",
        "wrmsr_site:",
        "wrmsr",
        "setc al",
        "movzx eax, al",
        "ret",
    )
}

//! Interrupt and exception entry points.
//!
//! Every one of them runs on a stack of its own (IST, see `tables.rs`): the precompiled `core` library may keep live data below
//! the stack pointer, and an AP may be interrupted on any stack.

use crate::{apic, percpu, smp};
use core::arch::naked_asm;

/// Vector that kicks a CPU out of HLT: look at your mailbox, and at the crate's hold and rendezvous requests.
pub const KICK: u8 = 0xf0;
/// Vectors the local APIC must be given, and that never fire here.
pub const TIMER: u8 = 0xf1;
pub const ERROR: u8 = 0xf2;
pub const SPURIOUS: u8 = 0xff;

/// What a fatal stub leaves on the stack.
#[repr(C)]
pub struct TrapFrame {
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

extern "C" fn fatal(frame: &TrapFrame) -> ! {
    // SAFETY: CR2 is only read.
    let cr2: u64 = x86_64::registers::control::Cr2::read_raw();
    crate::console::stop(format_args!(
        "TRAP vector={} error={:#x} rip={:#x} rsp={:#x} rflags={:#x} cs={:#x} ss={:#x} cr2={:#x} cpu={}",
        frame.vector,
        frame.error,
        frame.rip,
        frame.rsp,
        frame.rflags,
        frame.cs,
        frame.ss,
        cr2,
        percpu::this()
    ))
}

macro_rules! fatal_stub {
    ($name:ident, $vector:literal, $($push_error:literal)?) => {
        #[unsafe(naked)]
        pub extern "C" fn $name() {
            naked_asm!(
                $($push_error,)?
                concat!("push ", $vector),
                "mov rdi, rsp",
                "and rsp, -16",
                "call {fatal}",
                "ud2",
                fatal = sym fatal,
            )
        }
    };
}

fatal_stub!(divide_error, "0", "push 0");
fatal_stub!(invalid_opcode, "6", "push 0");
fatal_stub!(double_fault, "8",);
fatal_stub!(invalid_tss, "10",);
fatal_stub!(segment_not_present, "11",);
fatal_stub!(stack_fault, "12",);
fatal_stub!(protection_elsewhere, "13",);
fatal_stub!(page_fault, "14",);
fatal_stub!(machine_check, "18", "push 0");
fatal_stub!(simd, "19", "push 0");

/// #GP: `mtrr_pat` knows where to go on after one of its own accesses to an MSR; fatal anywhere else.
#[unsafe(naked)]
pub extern "C" fn general_protection() {
    naked_asm!(
        "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
        "mov rdi, [rsp + 80]", // RIP, above the nine and the error code
        "push rbp",
        "mov rbp, rsp",
        "and rsp, -16",
        "cld",
        "call {landing}",
        "mov rsp, rbp",
        "pop rbp",
        "test rax, rax",
        "jz 2f",
        "mov [rsp + 80], rax",
        "2:",
        "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx",
        "pop rax",
        "jz {fatal}",
        "lea rsp, [rsp + 8]", // error code
        "iretq",
        landing = sym landing,
        fatal = sym protection_elsewhere,
    )
}

/// Where to go on after a fault at `rip`; 0 if nowhere.
extern "C" fn landing(rip: u64) -> u64 {
    mtrr_pat::cpu::native::catching::fixup(rip).unwrap_or(0)
}

/// NMI, and the APIC vectors that need no answer.
#[unsafe(naked)]
pub extern "C" fn ignored() {
    naked_asm!("iretq")
}

/// The kick. Interrupts are only ever open around HLT, in an `asm!` that declares every caller-saved register lost, vector
/// registers included; so saving the integer ones here is a courtesy to the debugger.
#[unsafe(naked)]
pub extern "C" fn kick() {
    naked_asm!(
        "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
        "mov rax, rsp",
        "and rsp, -16",
        "push rax",
        "push rax",
        "cld",
        "call {handler}",
        "pop rax",
        "mov rsp, rax",
        "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
        "iretq",
        handler = sym on_kick,
    )
}

extern "C" fn on_kick() {
    // First, so that a kick sent from now on is delivered again after this one returns: none is lost.
    apic::end_of_interrupt();
    smp::serve(percpu::this());
}

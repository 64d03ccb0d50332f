//! RDMSR and WRMSR that survive #GP, with a line of help from the kernel's own handler.
//!
//! Only the kernel sees the exception. Its handler of vector 13 asks [`fixup`] first, before
//! anything else, on whatever CPU and with interrupts as they are:
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use mtrr_pat::cpu::native::catching::{self, Access};
//!
//! /// Called by the entry stub of #GP, with the saved frame: every register goes back as it was.
//! fn general_protection(saved_rip: &mut u64) {
//!     if let Some(landing) = catching::fixup(*saved_rip) {
//!         *saved_rip = landing; // and IRETQ: the access returns `MsrFault`
//!         return;
//!     }
//!     panic!("general protection fault at {saved_rip:#x}");
//! }
//! # general_protection(&mut catching::site(Access::Read));
//! # }
//! ```
//!
//! The handler runs in a caches-off window too, if a write there is refused: it touches nothing but
//! its stack before it asks.

use core::arch::naked_asm;

use super::MsrFault;
use crate::regs::MsrAddr;

/// Which of the two instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// RDMSR.
    Read,
    /// WRMSR.
    Write,
}

/// What [`access`] is asked to do.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Ask {
    Read = 0,
    Write = 1,
    ReadSite = 2,
    WriteSite = 3,
    Landing = 4,
}

/// Both instructions, their addresses, and where they go on after a fault: in one function, so that
/// no symbol has to be global. 0: it worked; 1: it faulted.
#[unsafe(naked)]
unsafe extern "sysv64" fn access(msr: u32, value: &mut u64, ask: Ask) -> u64 {
    naked_asm!(
        "mov ecx, edi",
        "mov edi, edx",
        "test edi, edi",
        "jne 3f",
        "2:",
        "rdmsr",
        "mov [rsi], eax",
        "mov [rsi + 4], edx",
        "xor eax, eax",
        "ret",
        "3:",
        "cmp edi, 1",
        "jne 5f",
        "mov eax, [rsi]",
        "mov edx, [rsi + 4]",
        "4:",
        "wrmsr",
        "xor eax, eax",
        "ret",
        "5:",
        "lea rax, [rip + 2b]",
        "cmp edi, 2",
        "je 6f",
        "lea rax, [rip + 4b]",
        "cmp edi, 3",
        "je 6f",
        "lea rax, [rip + 7f]",
        "6:",
        "ret",
        "7:",
        "mov eax, 1",
        "ret",
    )
}

fn asked(ask: Ask) -> u64 {
    // SAFETY: only the addresses are asked for: no MSR is touched, nor the value.
    unsafe { access(0, &mut 0, ask) }
}

/// The address of the one instruction of this kind.
#[must_use]
pub fn site(which: Access) -> u64 {
    asked(match which {
        Access::Read => Ask::ReadSite,
        Access::Write => Ask::WriteSite,
    })
}

/// Where a #GP handler goes on, if the fault at `rip` was one of this module's accesses; `None` for
/// every other fault. No side effect; any CPU, interrupts as they are.
#[must_use]
pub fn fixup(rip: u64) -> Option<u64> {
    let ours = rip == site(Access::Read) || rip == site(Access::Write);
    ours.then(|| asked(Ask::Landing))
}

/// RDMSR. At privilege level 0, with a #GP handler that asks [`fixup`]; else a fault is the kernel's.
///
/// # Errors
/// [`MsrFault`] when it raised #GP.
///
/// # Safety
/// Privilege level 0; the register is one that may be read without an effect the kernel minds.
pub unsafe fn rdmsr(msr: MsrAddr) -> Result<u64, MsrFault> {
    let mut value = 0;
    // SAFETY: the caller's promise.
    match unsafe { access(msr.0, &mut value, Ask::Read) } {
        0 => Ok(value),
        _ => Err(MsrFault),
    }
}

/// WRMSR. As for [`rdmsr`].
///
/// # Errors
/// [`MsrFault`] when it raised #GP: nothing was written.
///
/// # Safety
/// Privilege level 0; what the write does to the machine is what the kernel wants.
pub unsafe fn wrmsr(msr: MsrAddr, mut value: u64) -> Result<(), MsrFault> {
    // SAFETY: the caller's promise.
    match unsafe { access(msr.0, &mut value, Ask::Write) } {
        0 => Ok(()),
        _ => Err(MsrFault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_at(address: u64) -> [u8; 2] {
        // SAFETY: two bytes of this program's own code.
        unsafe { core::ptr::read(address as *const [u8; 2]) }
    }

    #[test]
    fn the_sites_are_the_two_instructions_and_nothing_else_is_fixed_up() {
        let (read, write) = (site(Access::Read), site(Access::Write));
        assert_eq!(
            (bytes_at(read), bytes_at(write)),
            ([0x0f, 0x32], [0x0f, 0x30])
        );
        let landing = fixup(read).unwrap();
        assert_eq!(fixup(write), Some(landing));
        // MOV EAX, 1.
        assert_eq!(bytes_at(landing), [0xb8, 1]);
        for rip in [0, u64::MAX, read - 1, read + 1, write + 2, landing] {
            assert_eq!(fixup(rip), None);
        }
    }
}

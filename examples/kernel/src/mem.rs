//! The memory functions that compiled Rust calls. The host target expects a C library to have them; there is none here.
//!
//! Written with string instructions, because a Rust loop would be compiled back into a call of the function itself.

use core::arch::asm;

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // Words first: a CPU that runs uncached, or an emulator, pays for each iteration.
    // SAFETY: the caller vouches for both areas; the direction flag is clear, as the ABI asks.
    unsafe {
        asm!("rep movsq", "mov ecx, {rest:e}", "rep movsb", rest = in(reg) bytes & 7,
            inout("rcx") bytes >> 3 => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags))
    };
    to
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= bytes {
        // SAFETY: copying upwards never overwrites a byte still to be read.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: as for memcpy, downwards from the last byte; the direction flag is put back.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") bytes => _, inout("rdi") to.wrapping_add(bytes).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(bytes).wrapping_sub(1) => _, options(nostack));
    };
    to
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    let word = u64::from(byte as u8) * 0x0101_0101_0101_0101;
    // Eight words a turn: an emulator pays more for an iteration than for a store.
    // SAFETY: the caller vouches for the area; as for memcpy.
    unsafe {
        asm!(
            "2: cmp rcx, 8", "jb 3f",
            "mov [rdi], rax", "mov [rdi + 8], rax", "mov [rdi + 16], rax", "mov [rdi + 24], rax",
            "mov [rdi + 32], rax", "mov [rdi + 40], rax", "mov [rdi + 48], rax", "mov [rdi + 56], rax",
            "add rdi, 64", "sub rcx, 8", "jmp 2b",
            "3: rep stosq", "mov ecx, {rest:e}", "rep stosb", rest = in(reg) bytes & 7,
            inout("rcx") bytes >> 3 => _, inout("rdi") to => _, in("rax") word, options(nostack));
    };
    to
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    for i in 0..bytes {
        // SAFETY: the caller vouches for `bytes` bytes at `a`. Volatile, so that the loop is not recognised as memcmp.
        let x = unsafe { a.wrapping_add(i).read_volatile() };
        // SAFETY: likewise at `b`.
        let y = unsafe { b.wrapping_add(i).read_volatile() };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// # Safety
/// As `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: the same contract.
    unsafe { memcmp(a, b, bytes) }
}

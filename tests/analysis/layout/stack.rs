//! How much stack a call takes: it runs on one of its own, painted before and read after.

use std::arch::asm;

const PAINT: u64 = 0x5ac5_5ac5_5ac5_5ac5;
const WORDS: usize = 1 << 16;

extern "C" fn call<F: FnMut()>(work: *mut F) {
    // SAFETY: `bytes_taken` passes a pointer to its own closure, which outlives the call.
    let work = unsafe { &mut *work };
    work();
}

/// Bytes of stack that `work` takes, its frames and those of all it calls; work must not panic.
#[allow(clippy::multiple_unsafe_ops_per_block)]
pub fn bytes_taken<F: FnMut()>(mut work: F) -> usize {
    let mut stack = vec![PAINT; WORDS];
    let top = stack.as_mut_ptr_range().end as usize & !15;
    let entry: extern "C" fn(*mut F) = call::<F>;
    // SAFETY: the new stack is ours alone and larger than anything measured here; the old stack
    // pointer waits in a register that the callee preserves and comes back after the call.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {entry}",
            "mov rsp, r12",
            top = in(reg) top,
            entry = in(reg) entry,
            in("rdi") &raw mut work,
            out("r12") _,
            clobber_abi("C"),
        );
    }
    let bottom = stack
        .iter()
        .position(|word| *word != PAINT)
        .unwrap_or(WORDS);
    assert!(bottom > WORDS / 4, "the painted stack is nearly full");
    top - stack.as_ptr() as usize - bottom * 8
}

//! `examples/c`: the library and its header for kernels in C, and what is in the object code.
//!
//! The kernel itself runs in `tests/qemu.rs`.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]

#[allow(dead_code, reason = "the tests in virtual machines use all of it")]
#[path = "../vm/c_kernel.rs"]
mod c_kernel;
#[allow(dead_code, reason = "the tests in virtual machines use all of it")]
#[path = "../vm/object.rs"]
mod object;

mod codes;
mod header;
mod targets;

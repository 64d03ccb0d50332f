//! The real kernel (`examples/kernel`) on QEMU, through real S3 sleeps.
//!
//! A run counts only with the kernel's end line *and* its exit code. What this cannot show: QEMU stores these registers and has no
//! caches, so it proves order, agreement and survival, not caching.
//!
//! Environment: `MTRR_PAT_QEMU=skip` leaves all of this out; `MTRR_PAT_QEMU_KVM=1` adds runs under KVM; `MTRR_PAT_QEMU_BOOTS=100`
//! sets the length of the stress loop, `MTRR_PAT_QEMU_ROUNDS` the sleeps in each of its boots, `MTRR_PAT_QEMU_SMP=64` a size to add;
//! `MTRR_PAT_QEMU_JOBS` how many machines run at a time (2), `MTRR_PAT_QEMU_PATIENCE` a factor on all time limits.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]

mod vm;

use std::sync::Mutex;
use std::thread;
use vm::{Run, Vm};

const MACHINES: [&str; 2] = ["pc", "q35"];
const MODES: [&str; 2] = ["early", "deferred"];
const SIZES: [&str; 5] = ["1", "2", "4", "8", "8,cores=4,threads=2"];
const SCRIBBLES: [&str; 7] = ["none", "sync", "off", "zero", "range", "pat", "some"];

/// CPUs in a `-smp` argument.
fn cpus(smp: &str) -> usize {
    smp.split(',').next().and_then(|count| count.parse().ok()).expect("a number first")
}

/// Runs all of them, as many at a time as `Vm::run` allows, and fails with the log of each that went wrong.
fn run_all(machines: Vec<Vm>, check: impl Fn(&Vm, &Run) -> Result<(), String> + Sync) {
    let total = machines.len();
    let queue = Mutex::new(machines.into_iter());
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().expect("workers do not panic").next();
            let Some(vm) = next else { break };
            let run = vm.run();
            let verdict = if run.succeeded() { check(&vm, &run) } else { Err("no end line with exit code 33".into()) };
            match verdict {
                Ok(()) => println!("ok    {vm}  ({} wakes, {:.1} s)", run.wakes, run.elapsed.as_secs_f32()),
                Err(reason) => failures.lock().expect("workers do not panic").push(format!(
                    "FAILED {vm}\n{reason}; exit code {:?} after {:.1} s, {} wakes\n--- QEMU says\n{}--- serial log\n{}---",
                    run.code,
                    run.elapsed.as_secs_f32(),
                    run.wakes,
                    run.stderr,
                    run.serial
                )),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("workers do not panic");
    assert!(failures.is_empty(), "{} of {total} runs failed\n{}", failures.len(), failures.join("\n"));
}

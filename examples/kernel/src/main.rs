//! A small kernel that uses `mtrr-pat` as a kernel author would.
//!
//! It boots by PVH (QEMU's `-kernel`) or Multiboot2 (GRUB), starts every CPU, gives all of them the boot CPU's memory types, changes
//! those while the machine runs, sleeps in a real ACPI S3, wakes, starts the CPUs again and gives the types back, as many times as
//! `rounds=` says. It compares every register itself, and ends with `ALL DONE differ=0` and QEMU's exit code 33 only if all of them
//! were right in every round. `README.md` has the words of its command line; `caching.rs` is the part to read first.
#![no_std]
#![no_main]

mod apic;
mod bootinfo;
mod caching;
mod clock;
mod console;
mod exit;
mod firmware;
mod mem;
mod msr;
mod options;
mod pci;
mod percpu;
mod pic;
mod racy;
mod regs;
mod rounds;
mod rtc;
mod scribble;
mod sleep;
mod smp;
mod stacks;
mod tables;
mod traps;

use bootinfo::BootInfo;
use firmware::Firmware;
use mtrr_pat::policy::{Bounds, PatChoice, Policy};
use options::Options;
use regs::RegFile;
use rounds::Verdict;

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));
core::arch::global_asm!(include_str!("trampoline.s"), options(att_syntax));

/// First Rust code of the boot CPU (called from `boot.s`): long mode, one-to-one map of 4 GiB, interrupts off.
#[unsafe(no_mangle)]
extern "C" fn kernel_main(magic: u32, info: usize) -> ! {
    console::init();
    // SAFETY: what the loader passed.
    let info = unsafe { BootInfo::read(magic, info) };
    let firmware = prepare(&info);
    let policy = policy(info.command_line());
    let before = RegFile::read();
    let outcome = caching::boot(policy).unwrap_or_else(|error| panic!("boot_init: {error}"));
    println!("boot CPU: {before}, {} variable ranges exist; {outcome}", before.pair_count());

    let mut verdict = Verdict::default();
    let rounds = options::get().rounds;
    live(&mut verdict, 0, &before);
    for round in 1..=rounds {
        let woken_with = verdict.sleep(round, &firmware);
        live(&mut verdict, round, &woken_with);
    }
    finish(&verdict)
}

/// From the boot CPU alone to a machine whose map was changed while it ran.
fn live(verdict: &mut Verdict, round: u32, boot_before: &RegFile) {
    verdict.bring_up(round);
    verdict.compare(round, Some(boot_before));
    verdict.change(round);
}

/// Everything that is not about memory types.
fn prepare(info: &BootInfo) -> Firmware {
    tables::load(caching::BOOT);
    tables::build_idt();
    pic::mask_all();
    let options = Options::parse(info.command_line()).unwrap_or_else(|word| panic!("bad value on the command line: {word}"));
    // SAFETY: no AP runs yet.
    unsafe { options::set(options) };
    let firmware = Firmware::read(info.rsdp);
    percpu::limit(options.cpus);
    percpu::adopt(caching::BOOT);
    clock::calibrate(firmware.pm_timer);
    apic::enable();
    for n in 1..percpu::count() {
        // SAFETY: no AP runs yet.
        unsafe { stacks::paint(n) };
    }
    println!("mtrr-pat kernel: {} CPUs, {} TSC ticks a microsecond, S3 {:?}, command line \"{}\"", percpu::count(), clock::ticks(1), firmware.s3, info.command_line());
    firmware
}

/// The Linux PAT layout, waits long enough for an emulator on a busy host; then what the command line says.
fn policy(line: &str) -> Policy {
    let bounds = Bounds { gather: clock::ticks(30_000_000), hold: clock::ticks(5_000_000), finish: clock::ticks(30_000_000) };
    let base = Policy { resync: options::get().resync, pat: PatChoice::Layout(mtrr_pat::pat::Pat::LINUX), bounds, ..Policy::DEFAULT };
    base.with_command_line(line).unwrap_or_else(|error| panic!("{error}"))
}

fn finish(verdict: &Verdict) -> ! {
    let used = (1..percpu::count()).map(stacks::used).fold([0; 2], |most, used| [most[0].max(used[0]), most[1].max(used[1])]);
    println!(
        "sizes: Snapshot {} bytes, CacheSync<{}> {} bytes; an AP used {} bytes of its own stack and {} of its interrupt stack",
        size_of::<mtrr_pat::snapshot::Snapshot>(),
        percpu::MAX_CPUS,
        size_of::<mtrr_pat::sync::CacheSync<{ percpu::MAX_CPUS }>>(),
        used[0],
        used[1],
    );
    println!("{}", caching::report());
    println!("ALL DONE differ={}", verdict.differ);
    if verdict.differ == 0 { exit::success() } else { exit::failure() }
}

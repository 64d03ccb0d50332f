//! A small kernel that uses `mtrr-pat` as a kernel author would.
//!
//! It boots by PVH (QEMU's `-kernel`) or Multiboot2 (GRUB), starts every CPU, gives all of them the boot CPU's memory types, changes
//! those while the machine runs, sleeps in a real ACPI S3, wakes, starts the CPUs again and gives the types back, as many times as
//! `rounds=` says. It compares every register itself, and ends with `ALL DONE differ=0` and QEMU's exit code 33 only if all of them
//! were right in every round. `README.md` has the words of its command line; `caching.rs` is the part to read first.
#![no_std]
#![no_main]
#![deny(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block
)]

mod account;
mod apic;
mod beep;
mod bench;
mod bootinfo;
mod caching;
mod clock;
mod codes;
mod console;
mod exit;
mod firmware;
mod framebuffer;
mod keep;
mod keyboard;
mod layouts;
mod mem;
mod msr;
mod neighbour;
mod options;
mod oracle;
mod pages;
mod pc;
mod pci;
mod percpu;
mod pic;
mod racy;
mod regs;
mod rounds;
mod rtc;
mod screen;
mod scribble;
mod sleep;
mod smp;
mod stacks;
mod sweep;
mod tables;
mod timings;
mod traps;
mod window;
mod wrap;

use bootinfo::BootInfo;
use core::num::NonZeroU64;
use core::time::Duration;
use firmware::Firmware;
use mtrr_pat::policy::{Bounds, PatChoice, Policy};
use options::Options;
use regs::RegFile;
use rounds::{BootCpu, Verdict};

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));
core::arch::global_asm!(include_str!("trampoline.s"), options(att_syntax));

/// First Rust code of the boot CPU (called from `boot.s`): long mode, one-to-one map of 4 GiB, interrupts off.
#[unsafe(no_mangle)]
extern "C" fn kernel_main(magic: u32, info: usize) -> ! {
    console::init();
    // SAFETY: what the loader passed.
    let info = unsafe { BootInfo::read(magic, info) };
    let firmware = prepare(&info);
    let watched = options::get().screen;
    if watched {
        pc::before(&info);
    }
    let policy = policy(info.command_line());
    let before = RegFile::read();
    let outcome = caching::boot(policy).unwrap_or_else(|error| panic!("boot_init: {error}"));
    println!(
        "{} variable ranges; a refused WRMSR comes back as an error: {}",
        before.pair_count(),
        refusal()
    );

    if watched {
        screen::combine();
    }
    let mut verdict = Verdict {
        ram_end: info.ram_end,
        ..Verdict::default()
    };
    if bench::wanted(info.command_line()) {
        verdict.bring_up(0);
        bench::run(policy, &mut verdict);
        finish(verdict);
    }
    live(
        &mut verdict,
        0,
        &BootCpu {
            before,
            outcome: Some(outcome),
        },
    );
    if watched {
        pc::after_boot(&verdict, &info, &firmware);
    }
    let sleeps = firmware.s3.is_some() || !watched;
    for round in (1..=options::get().rounds).filter(|_| sleeps) {
        if watched {
            pc::asleep(round);
        }
        let boot = verdict.sleep(round, &firmware);
        if watched {
            pc::awake();
        }
        live(&mut verdict, round, &boot);
        if watched && round == options::get().rounds {
            pc::after_sleep(&verdict, &info, &firmware);
        }
    }
    if watched {
        pc::at_the_end(&info, &firmware);
    }
    finish(verdict)
}

/// From the boot CPU alone to a machine whose map was changed while it ran.
fn live(verdict: &mut Verdict, round: u32, boot: &BootCpu) {
    verdict.bring_up(round);
    if options::get().spoil == Some(round) {
        scribble::spoil_pat();
    }
    verdict.compare(round, Some(boot));
    if options::get().screen {
        pc::note(round, boot);
    }
    verdict.change(round);
    if options::get().framebuffer {
        verdict.framebuffer(round);
    }
    if options::get().oracle && round == 0 {
        verdict.oracle();
    }
    if options::get().neighbour && round == 0 {
        verdict.neighbour();
    }
}

/// Tries the #GP handler with the upper half of a 32-bit register (IA32_PKRS), which even emulators that take any MTRR refuse.
fn refusal() -> bool {
    // SAFETY: protection keys for supervisor pages are not in use.
    !unsafe { msr::write(0x6e1, 1 << 32) }
}

/// Everything that is not about memory types.
fn prepare(info: &BootInfo) -> Firmware {
    tables::load(caching::BOOT);
    tables::build_idt();
    pic::mask_all();
    if Options::wants_screen(info.command_line()) {
        screen::open(info.display);
    }
    let options = Options::parse(info.command_line())
        .unwrap_or_else(|word| panic!("bad value on the command line: {word}"));
    // SAFETY: no AP runs yet.
    unsafe { options::set(options) };
    let firmware = Firmware::read(info.rsdp);
    percpu::limit(options.cpus);
    percpu::adopt(caching::BOOT);
    clock::calibrate(firmware.pm_timer);
    apic::enable();
    // SAFETY: no AP runs yet.
    unsafe { stacks::paint(percpu::count()) };
    println!(
        "mtrr-pat kernel: {} CPUs, {} TSC ticks a microsecond, S3 {:?}, command line \"{}\"",
        percpu::count(),
        clock::ticks(1),
        firmware.s3,
        info.command_line()
    );
    firmware
}

/// The Linux PAT layout, waits long enough for an emulator on a busy host; then what the command line says.
fn policy(line: &str) -> Policy {
    let bounds = Bounds {
        gather: Duration::from_secs(30),
        hold: Duration::from_secs(5),
        finish: Duration::from_secs(30),
    };
    let base = Policy {
        resync: options::get().resync,
        pat: PatChoice::Layout(mtrr_pat::pat::Pat::LINUX),
        bounds,
        tsc_hz: NonZeroU64::new(clock::ticks(1_000_000)),
        ..Policy::DEFAULT
    };
    base.with_command_line(line)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn finish(mut verdict: Verdict) -> ! {
    let most = |used: [usize; 2], n| core::array::from_fn(|i| used[i].max(stacks::used(n)[i]));
    let aps = (1..percpu::count()).fold([0; 2], most);
    println!(
        "sizes: Snapshot {} bytes, CacheSync<{}> {} bytes; stack used: AP {} bytes, in its interrupt handler {}, boot CPU {}, of it by the library {}",
        size_of::<mtrr_pat::snapshot::Snapshot>(),
        percpu::MAX_CPUS,
        size_of::<mtrr_pat::sync::CacheSync<{ percpu::MAX_CPUS }>>(),
        aps[0],
        aps[1],
        stacks::boot_cpu()[0],
        stacks::boot_cpu()[1],
    );
    verdict.differ += (0..percpu::count())
        .filter(|&n| stacks::exhausted(n))
        .count();
    println!("{}", caching::report());
    println!("ALL DONE differ={}", verdict.differ);
    if verdict.differ == 0 {
        exit::success()
    } else {
        exit::failure()
    }
}

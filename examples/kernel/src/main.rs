//! PHASE A.
#![no_std]
#![no_main]

mod apic;
mod bootinfo;
mod clock;
mod console;
mod exit;
mod firmware;
mod life;
mod mem;
mod msr;
mod options;
mod pci;
mod percpu;
mod pic;
mod racy;
mod regs;
mod rtc;
mod scribble;
mod sleep;
mod smp;
mod stacks;
mod tables;
mod traps;

use bootinfo::BootInfo;
use firmware::Firmware;
use options::Options;
use percpu::SLOTS;
use regs::RegFile;

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));
core::arch::global_asm!(include_str!("trampoline.s"), options(att_syntax));

#[unsafe(no_mangle)]
extern "C" fn kernel_main(magic: u32, info: usize) -> ! {
    console::init();
    // SAFETY: what the loader passed.
    let info = unsafe { BootInfo::read(magic, info) };
    tables::load(0);
    tables::build_idt();
    pic::mask_all();
    let options = Options::parse(info.command_line()).unwrap_or_else(|word| panic!("command line: {word}"));
    // SAFETY: no AP runs yet.
    unsafe { options::set(options) };
    let firmware = Firmware::read(info.rsdp);
    percpu::adopt(0);
    percpu::limit(options.cpus);
    clock::calibrate(firmware.pm_timer);
    apic::enable();
    println!("{} CPUs, {:?} ticks/us={} s3={:?} facs={:#x} rsdp={:#x}", percpu::count(), options, clock::ticks(1), firmware.s3, firmware.facs, info.rsdp);
    println!("boot {} vcnt={}", RegFile::read(), RegFile::read().pair_count());
    println!("read of a wild MSR: {:?}", msr::read(0xdead));
    unsafe {
        (*life::SAVED.get()).read_into();
        (*life::SAVED.get()).pat = 0x0407050600070106;
        (*life::SAVED.get()).pairs[3] = [0xd0000001, 0xff_ff00_0800];
    }
    scribble::apply(options::Scribble::Sync, 0, life::saved());
    let mut differ = 0;
    for n in 1..percpu::count() {
        // SAFETY: no AP runs yet.
        unsafe { stacks::paint(n) };
    }
    for round in 0..=options.rounds {
        if round > 0 {
            for n in 1..percpu::count() {
                assert!(smp::ask(n, smp::Request::Park), "cpu {n} does not park");
            }
            assert!(sleep::suspend(&firmware, options.wake), "no sleep");
            tables::load(0);
            percpu::adopt(0);
            console::init();
            pic::mask_all();
            apic::enable();
            sleep::acknowledge_wake(&firmware, options.wake);
            println!("round {round} woke: boot {} differs {}", RegFile::read(), RegFile::read().diff(life::saved()));
            scribble::apply(options::Scribble::Sync, 0, life::saved());
        }
        smp::install_trampoline();
        for n in 1..percpu::count() {
            assert!(smp::start(n, || ()), "cpu {n} does not start");
            assert!(smp::wait_online(n, || ()), "cpu {n} does not come online");
            assert!(smp::ask(n, smp::Request::Record), "cpu {n} does not answer");
            let slot = &SLOTS[n];
            let (found, after) = unsafe { (&*slot.found.get(), &*slot.settled.get()) };
            differ += after.diff(life::saved()).registers();
            if !options.quiet {
                println!("round {round} cpu {n} apic {} found {} differs {} after {} differs {}", percpu::apic_id(n), found, found.diff(life::saved()), after, after.diff(life::saved()));
            }
        }
    }
    println!("stack {:?}", (1..percpu::count()).map(stacks::used).max());
    println!("ALL DONE differ={differ}");
    if differ == 0 { exit::success() } else { exit::failure() }
}

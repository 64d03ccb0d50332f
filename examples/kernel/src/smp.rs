//! Starting, asking and parking APs.

use crate::options::{self, Trampoline};
use crate::percpu::{self, ABSENT, ARRIVED, MAIL, ONLINE, PARKED, SLOTS};
use crate::{apic, bench, caching, clock, sweep, tables};
use core::arch::asm;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Where the trampoline lives: also the firmware's waking vector (`sleep.rs`).
pub const TRAMPOLINE: usize = 0x8000;
/// After S3, firmware may still have a start-up IPI of its own on the way, to the page it uses itself.
const FIRMWARE_STARTUP_PAGE: usize = 0x10000;

/// How long an AP may take from its start-up IPI to its first instruction of Rust, per attempt.
const ARRIVAL_US: [u64; 6] = [100_000, 200_000, 500_000, 1_000_000, 2_000_000, 4_000_000];
/// How long from there to the end of its sync. Generous: with its MTRRs off a CPU can be a thousand times slower.
const ONLINE_US: u64 = 20_000_000;
/// How long a request to a running AP may take.
const REQUEST_US: u64 = 20_000_000;
/// After this long it is kicked once more.
const KICK_AGAIN_US: u64 = 500_000;

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static trampoline_cr0_and: u32;
    static trampoline_cr0_or: u32;
}

/// Copies the trampoline to low memory; before APs start and before S3.
pub fn install_trampoline() {
    let start = &raw const trampoline_start;
    let bytes = &raw const trampoline_end as usize - start as usize;
    // SAFETY: low memory that the firmware does not need, and no AP runs there now.
    unsafe { ptr::copy_nonoverlapping(start, TRAMPOLINE as *mut u8, bytes) };
    let (and, or) = match options::get().trampoline {
        Trampoline::NoFill => (!(1u32 << 29), 1u32 << 30), // NW off, CD on
        Trampoline::Naive => (!0, 0),
    };
    let placed = |symbol: *const u32| (TRAMPOLINE + (symbol as usize - start as usize)) as *mut u32;
    // SAFETY: inside the copy, aligned.
    unsafe { placed(&raw const trampoline_cr0_and).write(and) };
    // SAFETY: likewise.
    unsafe { placed(&raw const trampoline_cr0_or).write(or) };
    // CLI; HLT; JMP to the HLT.
    // SAFETY: as for the trampoline.
    unsafe { (FIRMWARE_STARTUP_PAGE as *mut [u8; 4]).write([0xfa, 0xf4, 0xeb, 0xfd]) };
    // An AP with its MTRRs off reads memory, not our cache: the trampoline, its tables and its options have to be there.
    // SAFETY: WBINVD changes no memory contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// Stops every AP in whatever firmware it may still be in: hundreds that spin there leave an emulator no time for the one that is
/// to come up.
pub fn stop_all() {
    for n in 1..percpu::count() {
        apic::send_init(n);
    }
}

/// Starts CPU `n`: waits until it shows up, then lets it go on. False when it is given up. `poll` runs in every wait.
///
/// An AP that shows up does nothing before it is told to go on, and is never sent an INIT after that. Without this, an AP that
/// takes a moment longer than the boot CPU's patience is reset in the middle of its sync, or after it said it was online.
pub fn start(n: usize, mut poll: impl FnMut()) -> bool {
    let slot = &SLOTS[n];
    slot.phase.store(ABSENT, Release); // the CPU does not run: nobody else writes this
    MAIL[n].go.store(0, Release);
    for arrival_us in ARRIVAL_US {
        apic::send_init(n);
        let mut wait = |us| {
            clock::wait_until(us, || {
                poll();
                slot.phase.load(Acquire) != ABSENT
            })
        };
        wait(200);
        for patience in [1_000, arrival_us] {
            apic::send_startup(n, (TRAMPOLINE >> 12) as u8);
            if wait(patience) {
                MAIL[n].go.store(1, Release);
                return true;
            }
        }
    }
    false
}

/// Starts all these CPUs at once, and lets each go on when it shows up; who does not is started again. As in [`start`], none is sent
/// an INIT once it was told to go on. `poll` runs in every wait.
pub fn start_all(which: &[bool], mut poll: impl FnMut()) {
    let all = || (0..which.len()).filter(|&n| which[n]);
    let waiting = |n: &usize| MAIL[*n].go.load(Acquire) == 0;
    for n in all() {
        MAIL[n].go.store(0, Release); // no CPU runs: nobody else writes this
    }
    for arrival_us in ARRIVAL_US {
        for n in all().filter(waiting) {
            apic::send_init(n);
            SLOTS[n].phase.store(ABSENT, Release); // it may have arrived just before
        }
        let mut wait = |us| {
            clock::wait_until(us, || {
                poll();
                for n in all().filter(waiting) {
                    if SLOTS[n].phase.load(Acquire) != ABSENT {
                        MAIL[n].go.store(1, Release);
                    }
                }
                all().find(waiting).is_none()
            })
        };
        wait(200);
        for patience in [1_000, arrival_us] {
            all()
                .filter(waiting)
                .for_each(|n| apic::send_startup(n, (TRAMPOLINE >> 12) as u8));
            if wait(patience) {
                return;
            }
        }
    }
}

/// Waits until CPU `n` is through its sync.
pub fn wait_online(n: usize, mut poll: impl FnMut()) -> bool {
    clock::wait_until(ONLINE_US, || {
        poll();
        SLOTS[n].phase.load(Acquire) == ONLINE
    })
}

/// First Rust code of an AP, on its own stack, interrupts off, caching and MTRRs as they come.
#[unsafe(no_mangle)]
extern "C" fn ap_main(n: usize) -> ! {
    ap_comes_up(n);
    loop {
        idle();
        bench::step(n);
    }
}

/// What an AP executes with its MTRRs off: no locked instruction, which would lock the bus for all (`tests/qemu.rs` looks
/// through the object code from here).
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ap_comes_up(n: usize) {
    tables::load(n);
    percpu::adopt(n);
    apic::enable();
    SLOTS[n].phase.store(ARRIVED, Release); // pairs with the Acquire in `start`
    while MAIL[n].go.load(Acquire) == 0 {
        core::hint::spin_loop();
    }
    caching::ap_online(n);
    SLOTS[n].phase.store(ONLINE, Release); // pairs with `wait_online`
}

/// Waits for one interrupt, and takes it.
pub fn idle() {
    // SAFETY: the handlers run on stacks of their own and return here; everything they may change is declared lost.
    unsafe { asm!("sti", "hlt", "cli", clobber_abi("sysv64")) };
}

/// What the boot CPU can ask of an AP.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    /// Read the registers into `Slot::after`.
    Record = 1,
    /// Stop for good, with interrupts off: the machine is about to sleep.
    Park = 2,
    /// Sweep memory until told to stop.
    Sweep = 3,
}

/// Asks CPU `n`, and waits for it. False if it does not answer.
pub fn ask(n: usize, request: Request) -> bool {
    answered(n, post(n, request))
}

/// Asks CPU `n`; gives the number of the request.
pub fn post(n: usize, request: Request) -> u32 {
    let mail = &MAIL[n];
    let number = mail.sequence.load(Relaxed).wrapping_add(1);
    mail.request.store(request as u32, Relaxed);
    mail.sequence.store(number, Release); // pairs with the Acquire in `serve`
    apic::kick(n);
    number
}

/// Waits for CPU `n` to carry a request out. False if it does not.
pub fn answered(n: usize, number: u32) -> bool {
    for _ in 0..REQUEST_US / KICK_AGAIN_US {
        if clock::wait_until(KICK_AGAIN_US, || SLOTS[n].done.load(Acquire) == number) {
            return true;
        }
        apic::kick(n);
    }
    false
}

/// Kick handler, on CPU `n`: the crate's business first, then the mailbox.
pub fn serve(n: usize) {
    caching::attend(n);
    let (mail, slot) = (&MAIL[n], &SLOTS[n]);
    let number = mail.sequence.load(Acquire);
    if number == slot.done.load(Relaxed) {
        return;
    }
    let request = mail.request.load(Relaxed);
    if request == Request::Record as u32 {
        // SAFETY: the boot CPU reads `after` only after `done` says so.
        unsafe { (*slot.after.get()).read_into() };
    }
    if request == Request::Sweep as u32 {
        sweep::serve(n);
    }
    if request == Request::Park as u32 {
        slot.phase.store(PARKED, Relaxed);
    }
    slot.done.store(number, Release); // pairs with the Acquire in `ask`
    if request == Request::Park as u32 {
        loop {
            x86_64::instructions::interrupts::disable();
            x86_64::instructions::hlt();
        }
    }
}

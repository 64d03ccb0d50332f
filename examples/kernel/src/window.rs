//! Mappings with a PAT slot of one's choice, at linear addresses that nothing else uses: next to the kernel's one-to-one map, in the
//! second entry of its top table, which all CPUs share.

use crate::racy::Racy;
use core::arch::asm;
use mtrr_pat::pat::Slot;

/// First linear address of the large pages; those of 4 KiB are 1 GiB further on.
const LARGE_BASE: u64 = 1 << 39;
const SMALL_BASE: u64 = LARGE_BASE + (1 << 30);

pub const LARGE_PAGE: u64 = 2 << 20;
const SMALL_PAGE: u64 = 0x1000;

/// Pages of either size that there are places for.
pub const PLACES: usize = 512;

const PRESENT_WRITABLE: u64 = 3;
const LARGE: u64 = 1 << 7;

#[repr(C, align(4096))]
struct Table(Racy<[u64; PLACES]>);

static DIRECTORIES: Table = Table(Racy::new([0; PLACES]));
static LARGE_PAGES: Table = Table(Racy::new([0; PLACES]));
static SMALL_TABLES: Table = Table(Racy::new([0; PLACES]));
static SMALL_PAGES: Table = Table(Racy::new([0; PLACES]));

unsafe extern "C" {
    static mut boot_pml4: [u64; PLACES];
}

/// Maps 4 KiB of physical memory at place `n`, and gives its linear address. For the calling CPU only: another may know the place as
/// it was before.
pub fn map_small(n: usize, phys: u64, slot: Slot) -> *mut u64 {
    link();
    let linear = SMALL_BASE + n as u64 * SMALL_PAGE;
    set(&SMALL_PAGES, n, phys | PRESENT_WRITABLE | slot.bits_4k());
    forget(linear);
    linear as *mut u64
}

/// As `map_small`, with 2 MiB.
pub fn map_large(n: usize, phys: u64, slot: Slot) -> *mut u64 {
    link();
    let linear = LARGE_BASE + n as u64 * LARGE_PAGE;
    set(
        &LARGE_PAGES,
        n,
        phys | PRESENT_WRITABLE | LARGE | slot.bits_large(),
    );
    forget(linear);
    linear as *mut u64
}

/// Takes the first `count` large pages away.
pub fn unmap_large(count: usize) {
    for n in 0..count {
        set(&LARGE_PAGES, n, 0);
        forget(LARGE_BASE + n as u64 * LARGE_PAGE);
    }
}

/// Hangs the tables together. Entries that point to tables use slot 0, as all of this kernel's do.
fn link() {
    let entry = |table: &Table| table.0.get() as u64 | PRESENT_WRITABLE;
    set(&SMALL_TABLES, 0, entry(&SMALL_PAGES));
    set(&DIRECTORIES, 0, entry(&LARGE_PAGES));
    set(&DIRECTORIES, 1, entry(&SMALL_TABLES));
    let top = (&raw mut boot_pml4).cast::<u64>().wrapping_add(1);
    // SAFETY: the second entry is this module's, and only the boot CPU uses it.
    unsafe { top.write_volatile(entry(&DIRECTORIES)) };
}

fn set(table: &Table, n: usize, entry: u64) {
    assert!(n < PLACES, "no such place");
    let at = table.0.get().cast::<u64>().wrapping_add(n);
    // SAFETY: inside the table; only the boot CPU maps here. Volatile, because the CPU reads it behind the compiler's back.
    unsafe { at.write_volatile(entry) };
}

fn forget(linear: u64) {
    // SAFETY: nothing but the caller's next access depends on this place.
    unsafe { asm!("invlpg [{}]", in(reg) linear, options(nostack, preserves_flags)) };
}

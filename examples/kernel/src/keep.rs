//! An account that survives a restart, in memory that neither the loader nor this kernel uses.
//!
//! A PC's screen usually stays dark after S3. So the account is written to memory, the machine restarts without losing power, and
//! the kernel shows on a working screen what it finds. Firmware may clear or overwrite memory: there are several copies, and a
//! checksum.

use crate::account::Account;
use crate::racy::Racy;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crc::{CRC_64_XZ, Crc};

const CHECK: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);
const MAGIC: u64 = u64::from_le_bytes(*b"mtrr-pat");

/// Where the copies are: above this kernel (`kernel.ld`), far from each other, and low enough for any PC.
const PLACES: [usize; 3] = [112 << 20, 168 << 20, 240 << 20];

#[repr(C)]
#[derive(Clone, Copy)]
struct Kept {
    magic: u64,
    check: u64,
    account: Account,
}

static FOUND: Racy<Account> = Racy::new(Account::EMPTY);
/// Which of the places are memory, one bit each.
static USABLE: AtomicUsize = AtomicUsize::new(0);

/// Finds out which places are memory, and takes the account of the run before the restart, if there is one. It is gone then.
pub fn open(ram: &[Range<u64>]) -> Option<&'static Account> {
    let is_ram = |at: u64| {
        let end = at + size_of::<Kept>() as u64;
        ram.iter()
            .any(|range| range.start <= at && end <= range.end)
    };
    for (n, &place) in PLACES.iter().enumerate() {
        USABLE.fetch_or(usize::from(is_ram(place as u64)) << n, Relaxed);
    }
    // SAFETY: mapped memory that nobody uses, and any bytes are a `Kept`.
    let kept = places().map(|place| unsafe { &mut *place });
    let mut found = false;
    for kept in kept {
        if kept.magic == MAGIC && kept.check == check(&kept.account) {
            // SAFETY: only the boot CPU runs, and nobody has asked for it yet.
            unsafe { *FOUND.get() = kept.account };
            found = true;
        }
        kept.magic = 0;
    }
    // SAFETY: written above, and nowhere else.
    found.then(|| unsafe { &*FOUND.get() })
}

/// Writes it to all places.
pub fn store(account: &Account) {
    // SAFETY: as in `open`.
    for kept in places().map(|place| unsafe { &mut *place }) {
        *kept = Kept {
            magic: MAGIC,
            check: check(account),
            account: *account,
        };
    }
}

fn places() -> impl Iterator<Item = *mut Kept> {
    let usable = USABLE.load(Relaxed);
    let places = PLACES.iter().enumerate();
    places
        .filter(move |(n, _)| usable >> n & 1 != 0)
        .map(|(_, &place)| place as *mut Kept)
}

fn check(account: &Account) -> u64 {
    let start = core::ptr::from_ref(account).cast::<u8>();
    // SAFETY: numbers only, without padding: all bytes are there to be read.
    CHECK.checksum(unsafe { core::slice::from_raw_parts(start, size_of::<Account>()) })
}

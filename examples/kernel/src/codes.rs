//! Registers as the content of QR codes, which the `inspect` example reads: capital letters and digits, in parts that each say whose
//! registers they are, so that they may be pasted in any order.
//!
//! `MTRR-PAT 1/2 WAKE CPU 0,2-5 BITS 40 INTEL FE: 508 2FF: C06 200: 0*16 .. END`: number of the first register, then the values from
//! there on, all hexadecimal; `*16` is sixteen times.

use crate::account::{Account, Members};
use crate::regs::{DEF_TYPE, FIXED, PAIRS, PAT, RegFile, is_guest};
use core::fmt::Write;
use heapless::String;
use raw_cpuid::CpuId;

/// Longest content.
pub const MOST: usize = 1249;
pub type Content = String<MOST>;

const CAP: u32 = 0xfe;
/// What tells the reader that nothing was cut off.
const END: &str = "END";
/// A run of values: register, value, count, and the spaces.
const LONGEST_STEP: usize = 5 + 17 + 4;
/// What comes before the values.
type Head = String<128>;

/// Calls `each` with the content of every code, each with at most `capacity` characters: after a sleep first what the kernel had
/// set, on all CPUs; then every state that CPUs came with.
pub fn all(account: &Account, capacity: usize, mut each: impl FnMut(&Content)) {
    let label = if account.round == 0 { "BOOT" } else { "WAKE" };
    if account.round != 0 {
        state(
            "SET",
            &account.now,
            &account.everybody(),
            account,
            capacity,
            &mut each,
        );
    }
    for (registers, members) in account.states() {
        state(label, registers, &members, account, capacity, &mut each);
    }
}

fn state(
    label: &str,
    registers: &RegFile,
    members: &Members<'_>,
    account: &Account,
    capacity: usize,
    each: &mut impl FnMut(&Content),
) {
    let bits = account.bits().get();
    let (vendor, guest) = processor();
    let head = |part, total| {
        let mut head = Head::new();
        // Members take less than 60 characters, and all there is room for is here.
        let _ = write!(
            head,
            "MTRR-PAT {part}/{total} {label} CPU {members} BITS {bits} {vendor} {guest}"
        );
        head
    };
    // Once to count them. The numbers in the head take the same room both times, so that the count is right.
    let room = capacity.min(MOST) - head(99, 99).len() - END.len();
    let mut total = 0;
    pack(registers, room, |_| total += 1);
    let mut part = 0;
    pack(registers, room, |values| {
        part += 1;
        let mut content = Content::new();
        for piece in [&*head(part, total), values, END] {
            let _ = content.push_str(piece);
        }
        each(&content);
    });
}

/// The registers in as few pieces of at most `room` characters as they take.
fn pack(registers: &RegFile, room: usize, mut each: impl FnMut(&str)) {
    let mut piece = Content::new();
    let mut next = None;
    let mut steps = steps(registers).peekable();
    while let Some((register, value)) = steps.next() {
        let mut times = 1;
        while steps.next_if_eq(&(register + times, value)).is_some() {
            times += 1;
        }
        if piece.len() + LONGEST_STEP > room {
            each(&piece);
            piece.clear();
            next = None;
        }
        if next != Some(register) {
            let _ = write!(piece, "{register:X}: ");
        }
        let _ = write!(piece, "{value:X}");
        if times > 1 {
            let _ = write!(piece, "*{times}");
        }
        let _ = piece.push(' ');
        next = Some(register + times);
    }
    each(&piece);
}

/// Whose rules hold, and whether a hypervisor has a say.
fn processor() -> (&'static str, &'static str) {
    let vendor = CpuId::new().get_vendor_info();
    let amd =
        vendor.is_some_and(|vendor| matches!(vendor.as_str(), "AuthenticAMD" | "HygonGenuine"));
    (
        if amd { "AMD" } else { "INTEL" },
        if is_guest() { "VM " } else { "" },
    )
}

/// Every register that the CPU has, with its number.
fn steps(registers: &RegFile) -> impl Iterator<Item = (u32, u64)> {
    let there = registers.cap != 0;
    let words = registers.pairs[..registers.pair_count()].as_flattened();
    let variable = (PAIRS..).zip(words.iter().copied());
    let fixed = FIXED.into_iter().zip(registers.fixed);
    let fixed = fixed.filter(|_| registers.has_fixed());
    let alone = [(CAP, registers.cap), (DEF_TYPE, registers.def_type)];
    let pat = [(PAT, registers.pat)];
    alone
        .into_iter()
        .filter(move |_| there)
        .chain(variable)
        .chain(fixed)
        .chain(pat)
}

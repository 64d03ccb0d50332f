//! Registers as the content of QR codes, which the `inspect` example reads: capital letters and digits, in parts that each say whose
//! registers they are, so that they may be pasted in any order.
//!
//! `MTRR-PAT 1/2 WAKE CPU 0,2-5 BITS 40 INTEL FE: 508 2FF: C06 200: 0*16 .. END`: number of the first register, then the values from
//! there on, all hexadecimal; `*16` is sixteen times.

use crate::account::{Account, Members};
use crate::regs::{DEF_TYPE, FIXED, PAIRS, PAT, RegFile};
use core::fmt::Write;
use heapless::String;
use raw_cpuid::CpuId;

/// Longest content.
pub const MOST: usize = 1249;
pub type Content = String<MOST>;

const CAP: u32 = 0xfe;
/// What tells the reader that nothing was cut off.
const END: &str = "END";
/// A run of values: register, value, count, the spaces, and the end.
const LONGEST_STEP: usize = 5 + 17 + 4 + END.len();

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
    // Once to count them, with a number as wide as can be.
    let mut total = 0;
    let bits = account.bits().get();
    let (vendor, guest) = processor();
    let head = |part, total| -> String<96> {
        let mut head = String::new();
        let written = write!(
            head,
            "MTRR-PAT {part}/{total} {label} CPU {members} BITS {bits} {vendor} {guest}"
        );
        debug_assert!(written.is_ok());
        head
    };
    pack(registers, capacity, |_| head(99, 99), &mut |_| total += 1);
    pack(registers, capacity, |part| head(part, total), each);
}

/// The registers in as few parts as fit.
fn pack(
    registers: &RegFile,
    capacity: usize,
    head: impl Fn(usize) -> String<96>,
    each: &mut impl FnMut(&Content),
) {
    let mut part = Content::new();
    let mut count = 0;
    let mut next = None;
    let mut steps = steps(registers).peekable();
    while let Some((register, value)) = steps.next() {
        let mut times = 1;
        while steps.next_if_eq(&(register + times, value)).is_some() {
            times += 1;
        }
        if part.is_empty() || part.len() + LONGEST_STEP > capacity.min(MOST) {
            if !part.is_empty() {
                let _ = part.push_str(END);
                each(&part);
            }
            count += 1;
            part.clear();
            // What does not fit is missing when it is read, and said to be.
            let _ = part.push_str(&head(count));
            next = None;
        }
        if next != Some(register) {
            let _ = write!(part, "{register:X}: ");
        }
        let _ = write!(part, "{value:X}");
        if times > 1 {
            let _ = write!(part, "*{times}");
        }
        let _ = part.push(' ');
        next = Some(register + times);
    }
    if !part.is_empty() {
        let _ = part.push_str(END);
        each(&part);
    }
}

/// Whose rules hold, and whether a hypervisor has a say.
fn processor() -> (&'static str, &'static str) {
    let cpuid = CpuId::new();
    let vendor = cpuid.get_vendor_info();
    let amd =
        vendor.is_some_and(|vendor| matches!(vendor.as_str(), "AuthenticAMD" | "HygonGenuine"));
    let guest = cpuid
        .get_feature_info()
        .is_some_and(|info| info.has_hypervisor());
    (
        if amd { "AMD" } else { "INTEL" },
        if guest { "VM " } else { "" },
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

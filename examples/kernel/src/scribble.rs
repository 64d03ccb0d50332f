//! Plays the broken firmware: writes wrong values into an AP's registers before the AP's sync, with bare WRMSRs and none of the
//! care that a real change needs. Nothing here is an example to follow.

use crate::msr;
use crate::options::Scribble;
use crate::regs::{DEF_TYPE, FIXED, PAIRS, PAT, RegFile, features};

/// The PAT after power-on.
const PAT_RESET: u64 = 0x0007_0406_0007_0406;
const ENABLE: u64 = 0x800;

/// Spoils the calling AP, number `n`, as asked. `saved` is the state it will have to have afterwards.
pub fn apply(what: Scribble, n: usize, saved: &RegFile) {
    match what {
        Scribble::None => {}
        Scribble::Sync => write(saved),
        Scribble::Off => {
            write(saved);
            poke(DEF_TYPE, saved.def_type & !ENABLE);
        }
        Scribble::Zero => write(&RegFile {
            cap: saved.cap,
            pat: saved.pat,
            ..RegFile::EMPTY
        }),
        Scribble::Range => {
            write(saved);
            spoil_range(saved);
        }
        Scribble::Pat => {
            write(saved);
            poke(PAT, PAT_RESET);
        }
        Scribble::Some => {
            write(saved);
            if n % 2 == 1 {
                spoil_range(saved);
            }
        }
    }
}

/// Behind the crate's back, on the calling CPU: a PAT that is not the one all have, but for the slots that this kernel's tables use.
pub fn spoil_pat() {
    poke(PAT, PAT_RESET & !0xff00_0000_0000_0000);
}

/// 16 MiB of write-through at 3 GiB, in the last pair.
fn spoil_range(saved: &RegFile) {
    if let Some(last) = saved.pair_count().checked_sub(1) {
        let register = PAIRS + 2 * last as u32;
        poke(register, 0xc000_0000 | 4);
        poke(register + 1, 0xf_ff00_0000 | ENABLE);
    }
}

fn write(file: &RegFile) {
    let (has_mtrr, has_pat) = features();
    if has_pat {
        poke(PAT, file.pat);
    }
    if !has_mtrr {
        return;
    }
    poke(DEF_TYPE, 0);
    if file.has_fixed() {
        for (&register, &value) in FIXED.iter().zip(&file.fixed) {
            poke(register, value);
        }
    }
    for (register, pair) in (PAIRS..).step_by(2).zip(&file.pairs[..file.pair_count()]) {
        poke(register, pair[0]);
        poke(register + 1, pair[1]);
    }
    poke(DEF_TYPE, file.def_type);
}

fn poke(register: u32, value: u64) {
    // SAFETY: the AP has nothing cached yet that a change of types could hurt, and its sync puts this right.
    unsafe { msr::write(register, value) };
}

//! The same on threads that run as they like: invariants only, bounds no living CPU reaches.
//!
//! The machine's time stands still, but for a nanosecond per operation, while any CPU can go on by
//! itself: so a loaded host makes no healthy CPU late, and a wait for a stuck one ends at once.

use crate::common::SCOPES;
use crate::common::matrix::{Life, WHEN, Wrong};

fn each(wrongs: &[Wrong], seeds: std::ops::Range<u64>) {
    for &wrong in wrongs {
        for when in WHEN {
            for scope in SCOPES {
                for seed in seeds.clone() {
                    let cpu = [2, 3, 1][seed as usize % 3];
                    let free = true;
                    Life {
                        wrong,
                        when,
                        scope,
                        cpu,
                        seed,
                        free,
                    }
                    .live();
                }
            }
        }
    }
}

#[test]
fn arrivals() {
    let wrongs = [
        Wrong::Nothing,
        Wrong::NeverArrives,
        Wrong::ArrivesLate,
        Wrong::ArrivesTwice,
        Wrong::OtherNumber,
        Wrong::S3Again,
    ];
    each(&wrongs, 1..3);
}

#[test]
fn registers() {
    let wrongs = [
        Wrong::Gp(3),
        Wrong::Gp(34),
        Wrong::Ignored(1),
        Wrong::Ignored(20),
        Wrong::VcntDiffers,
        Wrong::Smm,
        Wrong::Interrupts,
    ];
    each(&wrongs, 2..3);
}

#[test]
fn stuck_before_in_or_after_the_window() {
    let stuck = [
        Wrong::StuckBeforeWindow,
        Wrong::StuckInWindow,
        Wrong::StuckAfterWindow,
    ];
    each(&stuck, 0..6);
}

//! The same on threads that run as they like: invariants only, bounds no living CPU reaches.
//!
//! Without the faults that only a bound ends (a CPU stuck for ever): wall-clock bounds that are
//! short enough to wait for are short enough for a loaded host to miss.
#![cfg(feature = "sim")]

mod common;

use common::SCOPES;
use common::matrix::{Life, WHEN, When, Wrong};

fn each(wrongs: &[Wrong], seeds: std::ops::Range<u64>) {
    for &wrong in wrongs {
        for when in WHEN {
            if (wrong, when) == (Wrong::NeverArrives, When::RunTime) {
                continue;
            }
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

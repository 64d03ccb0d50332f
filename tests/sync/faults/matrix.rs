//! What can go wrong x {early, deferred, run time} x both MTRR scopes, over many schedules.
//!
//! Each life ends (the simulated machine says so when nobody can go on), with a typed outcome, every
//! healthy CPU in line, no CPU but a stuck one with caching off, and no partial map in force.

use crate::common::SCOPES;
use crate::common::matrix::{Life, WHEN, Wrong};

/// Every place and scope; the struck CPU is the boot CPU's sibling, a first and a second thread.
fn each(wrongs: &[Wrong], seeds: u64) {
    for &wrong in wrongs {
        for when in WHEN {
            for scope in SCOPES {
                for seed in 0..seeds {
                    let cpu = [2, 3, 1][seed as usize % 3];
                    let free = false;
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
fn nothing() {
    each(&[Wrong::Nothing], 8);
}

#[test]
fn never_arrives() {
    each(&[Wrong::NeverArrives], 8);
}

#[test]
fn arrives_late_or_twice_or_under_a_wrong_number() {
    each(
        &[Wrong::ArrivesLate, Wrong::ArrivesTwice, Wrong::OtherNumber],
        6,
    );
}

#[test]
fn a_write_faults() {
    each(&[1, 2, 17, 34].map(Wrong::Gp), 6);
}

#[test]
fn a_write_is_ignored() {
    each(&[1, 2, 17, 34].map(Wrong::Ignored), 6);
}

#[test]
fn the_number_of_pairs_differs() {
    each(&[Wrong::VcntDiffers], 6);
}

#[test]
fn smm_rewrites_the_map_between_compare_and_write() {
    each(&[Wrong::Smm], 8);
}

#[test]
fn stuck_before_in_or_after_the_window() {
    let stuck = [
        Wrong::StuckBeforeWindow,
        Wrong::StuckInWindow,
        Wrong::StuckAfterWindow,
    ];
    each(&stuck, 6);
}

#[test]
fn interrupts_arrive_while_it_is_held() {
    each(&[Wrong::Interrupts], 12);
}

#[test]
fn the_machine_sleeps_again_during_the_resync() {
    each(&[Wrong::S3Again], 8);
}

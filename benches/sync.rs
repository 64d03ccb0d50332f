//! Early and deferred resync on one model of a real machine, in virtual time.
//!
//! `cargo bench --features sim --bench sync` prints one table. Nothing here depends on how fast
//! this computer is: two runs print the same.

#![allow(dead_code)] // the example uses what this does not

#[path = "../examples/published/figures.rs"]
mod figures;
#[path = "../examples/published/fit.rs"]
mod fit;
#[path = "../examples/published/model.rs"]
mod model;

use figures::{Computer, MACBOOK_2012};
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::MtrrScope;
use model::{Idle, Model, Way};

/// What is compared: a name, how APs are synced, the order they come in, the published total.
const ROWS: [(&str, Way, &[usize], Option<f64>); 5] = [
    ("deferred", Way::Rendezvous(Resync::Deferred), MACBOOK_2012.order, Some(4159.0)),
    ("all CPUs meet for each AP (as published early)", Way::MeetForEach, MACBOOK_2012.order, Some(1168.0)),
    ("early", Way::Rendezvous(Resync::Early), MACBOOK_2012.order, None),
    ("early, siblings one after the other", Way::Rendezvous(Resync::Early), &[1, 2, 3, 4, 5, 6, 7], None),
    ("deferred, siblings one after the other", Way::Rendezvous(Resync::Deferred), &[1, 2, 3, 4, 5, 6, 7], None),
];

fn main() {}

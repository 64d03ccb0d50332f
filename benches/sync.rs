//! Early and deferred resync on the model of one real machine, in virtual time.
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
use model::{Idle, Meet, Model};
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::MtrrScope;

/// One way to resume.
struct Way {
    name: &'static str,
    mode: Resync,
    meet: Meet,
    order: &'static [usize],
    /// Milliseconds of the whole resume.
    published: Option<f64>,
}

/// First threads first, as published; and the threads of each core together.
const PUBLISHED: &[usize] = MACBOOK_2012.order;
const TOGETHER: &[usize] = &[1, 2, 3, 4, 5, 6, 7];

const WAYS: [Way; 5] = [
    Way {
        name: "deferred",
        mode: Resync::Deferred,
        meet: Meet::AtTheEnd,
        order: PUBLISHED,
        published: Some(4159.0),
    },
    Way {
        name: "all CPUs meet for each AP (published early)",
        mode: Resync::Deferred,
        meet: Meet::ForEachAp,
        order: PUBLISHED,
        published: Some(1168.0),
    },
    Way {
        name: "early: only siblings are held",
        mode: Resync::Early,
        meet: Meet::AtTheEnd,
        order: PUBLISHED,
        published: None,
    },
    Way {
        name: "early, threads of a core together",
        mode: Resync::Early,
        meet: Meet::AtTheEnd,
        order: TOGETHER,
        published: None,
    },
    Way {
        name: "deferred, threads of a core together",
        mode: Resync::Deferred,
        meet: Meet::AtTheEnd,
        order: TOGETHER,
        published: None,
    },
];

/// What one run came to: milliseconds in all, and those in which APs stood still for others.
fn run(way: &Way, scope: MtrrScope) -> (f64, f64) {
    let model = Model {
        computer: Computer {
            order: way.order,
            ..MACBOOK_2012
        },
        scope,
        mode: way.mode,
        work: fit::FOUND,
        idle: Idle::Sleep,
        meet: way.meet,
    };
    let resumed = model.run();
    (resumed.total(), resumed.still)
}

fn main() {
    println!(
        "Resume of a {} after S3, virtual milliseconds, work fitted as in examples/published.\n\
         \"still\": summed over the APs, the time in which they were held or took part in a meeting.\n",
        MACBOOK_2012.name
    );
    println!(
        "  {:<44} {:>9} {:>10} {:>7} {:>10} {:>7}",
        "", "published", "per core", "still", "per thread", "still"
    );
    for way in &WAYS {
        let [core, thread] = [MtrrScope::Core, MtrrScope::Thread].map(|scope| run(way, scope));
        let published = way
            .published
            .map_or_else(|| "-".into(), |ms| format!("{ms:.0}"));
        println!(
            "  {:<44} {published:>9} {:>10.1} {:>7.2} {:>10.1} {:>7.2}",
            way.name, core.0, core.1, thread.0, thread.1
        );
    }
}

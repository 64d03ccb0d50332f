//! Early and deferred resync on the model of one real machine, in virtual time: work fitted as in
//! `examples/published`.

#![allow(dead_code)] // the example uses what this does not

#[path = "../../examples/published/figures.rs"]
mod figures;
#[path = "../../examples/published/fit.rs"]
mod fit;
#[path = "../../examples/published/model.rs"]
mod model;

use super::print::{Cell, Out};
use super::tables::Size;
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

pub fn resume(out: &mut Out, _: Size) {
    out.table(
        "published",
        "resume of a MacBookPro9,1 after S3, by who meets whom; still: summed over the APs, held or in a rendezvous",
        &["way", "published", "per core", "still", "per thread", "still "],
    );
    for way in &WAYS {
        let [core, thread] = [MtrrScope::Core, MtrrScope::Thread].map(|scope| run(way, scope));
        let published = way.published.map_or(Cell::text("-"), time);
        out.row(vec![
            Cell::text(way.name),
            published,
            time(core.0),
            time(core.1),
            time(thread.0),
            time(thread.1),
        ]);
    }
}

/// Virtual milliseconds.
fn time(milliseconds: f64) -> Cell {
    Cell::Time((milliseconds * 1e9) as u64)
}

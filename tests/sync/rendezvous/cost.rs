//! What a rendezvous of 288 CPUs costs after S3, against the same under one lock: the benches' cases, in
//! virtual time, so the same on every host.
#![allow(dead_code)] // the benches use more of these

#[path = "../../../benches/sync/case.rs"]
mod case;
#[path = "../../../benches/sync/life.rs"]
mod life;
#[path = "../../../benches/sync/ours.rs"]
mod ours;
#[path = "../../../benches/sync/peers.rs"]
mod peers;

use case::{Case, Who};
use mtrr_pat::policy::CacheFlush;
use mtrr_pat::sim::{MtrrScope, Scribble};
use peers::Shape;

/// How many times as long the serialised way takes; and our windows in series.
fn ratio(machine: (usize, usize), flush: CacheFlush) -> (u64, usize) {
    let case = Case::new(machine).with(|case| case.our_flush = flush);
    let ours = case.run(Who::Deferred);
    let serialised = case.run(Who::Peer(Shape::Serialised));
    assert_eq!(
        (ours.broken, serialised.in_series),
        (0, machine.0 * machine.1)
    );
    let ratio = serialised.rendezvous as f64 / ours.rendezvous as f64;
    (ratio.round() as u64, ours.in_series)
}

#[test]
fn at_288_cpus_it_is_what_the_readme_says_and_above_50() {
    let [default, always] = [CacheFlush::WhenNeeded, CacheFlush::Always].map(|flush| {
        let two = ratio((144, 2), flush);
        let four = ratio((72, 4), flush);
        assert_eq!((two.1, four.1), (2, 4), "a turn for each thread of a core");
        assert!(two.0 >= 50 && four.0 >= 50, "{two:?} {four:?}");
        [two.0, four.0]
    });
    let said = format!(
        "{} times faster with two threads a core, {} with four ({} and {} without self-snoop)",
        default[0], default[1], always[0], always[1]
    );
    assert!(include_str!("../../../README.md").contains(&said), "{said}");
}

/// All APs started at once, after S3, against the unsafe way: each by itself, whatever its sibling does.
#[test]
fn started_at_once_288_cpus_take_hardly_longer_than_without_asking_siblings() {
    let mut said = Vec::new();
    for scope in [MtrrScope::Thread, MtrrScope::Core] {
        let one = Case::new((144, 2)).with(|case| {
            case.config.scope = scope;
            case.left = Scribble::Off;
        });
        let all = one.clone().with(|case| case.parallel = true);
        let (ours, alone) = (all.run(Who::Early), all.run(Who::Peer(Shape::Alone)));
        assert_eq!(ours.broken, 0);
        assert!(alone.broken > 0, "that is what it saves");
        let ratio = ours.resume as f64 / alone.resume as f64;
        assert!(ratio <= 1.3, "{scope:?}: {ratio}");
        let single = one.run(Who::Early).resume as f64 / ours.resume as f64;
        said.push(format!("{single:.0}"));
    }
    let said = format!("started at once {} to {} times", said[1], said[0]);
    assert!(include_str!("../../../README.md").contains(&said), "{said}");
}

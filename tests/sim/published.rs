//! What the model makes of published observations: `examples/published` prints it.
#![allow(dead_code)] // the example uses what the tests do not

#[path = "../../examples/published/figures.rs"]
mod figures;
#[path = "../../examples/published/fit.rs"]
mod fit;
#[path = "../../examples/published/model.rs"]
mod model;
#[path = "../../examples/published/neighbours.rs"]
mod neighbours;
#[path = "../../examples/published/once.rs"]
mod once;
#[path = "../../examples/s3_resume/progress.rs"]
mod progress;
#[path = "../../examples/published/resume.rs"]
mod resume;
#[path = "../../examples/published/sharing.rs"]
mod sharing;
#[path = "../../examples/s3_resume/timeline.rs"]
mod timeline;

use figures::{DEFERRED_OVER_EARLY, MACBOOK_2012, MACBOOK_2015};
use fit::{FOUND, error, search, search_traced, traced};
use model::{Idle, Meet, Model};
use mtrr_pat::memtype::PatType;
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::MtrrScope;
use once::Who;
use resume::{Comparison, SCOPES, compare};

const CORE: usize = 0;
const THREAD: usize = 1;

#[test]
fn the_search_finds_the_committed_values_under_both_hypotheses() {
    for scope in SCOPES {
        assert_eq!(search(scope, Idle::Sleep, || {}), FOUND, "{scope:?}");
    }
}

/// The simulated time to up of an AP.
fn up(comparison: &Comparison, scope: usize, mode: Resync, apic: usize) -> f64 {
    let mut cells = comparison.cells.iter();
    let found = cells.find(|c| c.mode == mode && c.apic == apic && c.what == "to up");
    found.expect("a figure").simulated[scope]
}

/// Under the better hypothesis of each machine.
fn only_apic_1_is_fast(comparison: &Comparison, scope: usize, others: &[usize]) {
    for mode in [Resync::Early, Resync::Deferred] {
        assert!(up(comparison, scope, mode, 1) < 10.0);
    }
    for &apic in others {
        let deferred = up(comparison, scope, Resync::Deferred, apic);
        let early = up(comparison, scope, Resync::Early, apic);
        assert!(deferred > 150.0, "APIC id {apic}: {deferred} ms");
        assert!(early < deferred / 3.0, "APIC id {apic}: {early} ms");
    }
}

#[test]
fn the_first_computer_has_a_set_of_mtrrs_per_thread() {
    let found = compare(MACBOOK_2012, [FOUND; 2], Idle::Sleep);
    assert_eq!(found.cells.len(), 28);
    only_apic_1_is_fast(&found, THREAD, &[2, 3, 4, 5, 6, 7]);
    let ratio = error(found.ratio[THREAD], DEFERRED_OVER_EARLY);
    assert!(ratio.abs() < 0.15, "{ratio}");
    let median = found.median(THREAD, |_| true);
    assert!(median < 0.25, "{median}");
    // Per core, second threads would find their set restored: the published ones did not.
    assert!(found.median(CORE, |_| true) > median);
    let [core, thread] = found.ratio;
    let words = format!("{thread:.2} with MTRRs per thread, {core:.2} per core");
    assert!(include_str!("../../README.md").contains(&words), "{words}");
    for apic in [3, 5, 7] {
        assert!(up(&found, CORE, Resync::Early, apic) < 10.0);
        assert!(up(&found, THREAD, Resync::Early, apic) > 70.0);
    }
}

#[test]
fn the_second_computer_has_a_set_per_core() {
    let factors = SCOPES.map(|scope| search_traced(scope, FOUND));
    let works = factors.map(|factor| traced(FOUND, factor));
    let found = compare(MACBOOK_2015, works, Idle::Sleep);
    only_apic_1_is_fast(&found, CORE, &[2, 3]);
    // Published 4.2 ms: per core it is near, per thread it cannot be.
    assert!(up(&found, CORE, Resync::Early, 3) < 10.0);
    assert!(up(&found, THREAD, Resync::Early, 3) > 40.0);
}

#[test]
fn runs_are_the_same_to_the_byte() {
    let committed = include_str!("../../examples/resume.svg");
    assert!(
        resume::picture().unwrap() == committed,
        "--svg draws another picture"
    );
    let run = || {
        let model = Model {
            computer: MACBOOK_2012,
            scope: MtrrScope::Thread,
            mode: Resync::Early,
            work: FOUND,
            idle: Idle::Poll,
            meet: Meet::AtTheEnd,
        };
        let machine = model.machine();
        let resumed = model.run_on(&machine);
        let spans: Vec<_> = (0..8).map(|cpu| machine.timeline(cpu)).collect();
        format!("{resumed:?} {spans:?}")
    };
    assert_eq!(run(), run());
}

#[test]
fn the_picture_shows_both_modes_inside_its_frame() {
    let svg = resume::picture().unwrap();
    assert!(svg.contains("Early resync: ") && svg.contains("Deferred resync: "));
    let frame = svg.split('"').nth(1).expect("a view box");
    let width: f64 = frame.split(' ').nth(2).unwrap().parse().unwrap();
    for text in svg.split("<text x=\"").skip(1) {
        let x: f64 = text.split('"').next().unwrap().parse().unwrap();
        let line = text.split(">\n").nth(1).expect("its words");
        let words = line.lines().next().unwrap_or_default();
        let long = 8.0 * words.len() as f64;
        let (left, right) = match text {
            end if end.contains("text-anchor=\"end\"") => (x - long, x),
            middle if middle.contains("text-anchor=\"middle\"") => (x - long / 2.0, x + long / 2.0),
            _ => (x, x + long),
        };
        assert!(
            left >= 0.0 && right <= width,
            "`{words}` from {left} to {right}"
        );
    }
}

#[test]
fn a_refusal_is_found_out_once() {
    for (cpus, every, once_only) in once::PUBLISHED {
        let work = once::published_work();
        let [all, boot] = [Who::EveryCpu, Who::BootCpu].map(|who| once::boot(cpus, who, work));
        assert_eq!((all.attempts, boot.attempts), (3 * cpus as u64, 1));
        // Both writes of the one probe, of DEF_TYPE and of the PAT.
        assert_eq!((all.faults, boot.faults), (6 * cpus as u64, 2));
        let ratio = error(all.seconds / boot.seconds, every / once_only);
        assert!(ratio.abs() < 0.4, "{cpus} CPUs: {ratio}");
    }
}

#[test]
fn words_in_one_line_cost_time() {
    let time = |layout, work| sharing::time(64, layout, work);
    for (work, least) in [(100, 4.0), (1_000, 1.2)] {
        let slower = time(sharing::Layout::Packed, work) / time(sharing::Layout::Apart, work);
        assert!(slower > least, "{work}: {slower}");
    }
}

#[test]
fn write_combining_slows_neighbours_unless_their_data_fits_or_it_is_refused() {
    use neighbours::{LARGE, SMALL, granted, run};
    let wc = granted(PatType::WriteCombining, "");
    let refused = granted(PatType::WriteCombining, "nowc");
    assert_eq!(
        (wc, refused),
        (PatType::WriteCombining, PatType::UncachedMinus)
    );
    let slower = |buffer, memtype| {
        let beside = run(buffer, Some(memtype)).victims;
        beside / run(buffer, None).victims
    };
    let factor = slower(LARGE, wc);
    assert!((7.0..15.0).contains(&factor), "{factor}");
    for (buffer, memtype) in [(SMALL, wc), (LARGE, refused), (SMALL, refused)] {
        let factor = slower(buffer, memtype);
        assert!((0.99..1.1).contains(&factor), "{factor}");
    }
    assert!(run(LARGE, Some(wc)).writer > 2.0 * run(LARGE, Some(refused)).writer);
}

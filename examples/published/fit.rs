//! Finds the four parameters of [`Work`]: a deterministic pattern search.
//!
//! Fitted to the twelve figures of the first threads of the scribbled cores of the first computer
//! (APIC ids 2, 4 and 6: up and gap, early and deferred). No second thread is among them, so the
//! two hypotheses about the scope of MTRRs must agree on the fit, and differ in what follows.

use mtrr_pat::policy::Resync;
use mtrr_pat::sim::MtrrScope;

use super::figures::{Computer, MACBOOK_2012, MACBOOK_2015};
use super::model::{Idle, Meet, Model, Work};

pub const MODES: [Resync; 2] = [Resync::Early, Resync::Deferred];

/// APIC ids whose figures are fitted.
pub const FITTED: [usize; 3] = [2, 4, 6];

/// What the search finds with sleeping idle CPUs, under either hypothesis; a test repeats it.
pub const FOUND: Work = Work {
    before: 131_805,
    after: 1_672_708,
    between: 83_485_461,
    called: 1_033_024,
};

/// Where the search starts: round numbers of the right order.
const START: Work = Work {
    before: 100_000,
    after: 1_000_000,
    between: 30_000_000,
    called: 1_000_000,
};

/// Searches on the first computer. `step` is called for every trial.
pub fn search(scope: MtrrScope, idle: Idle, mut step: impl FnMut()) -> Work {
    let mut loss = |work: [u64; 4]| {
        step();
        loss(scope, idle, unpack(work))
    };
    let mut best = [START.before, START.after, START.between, START.called];
    let mut least = loss(best);
    let mut factor = 2.0f64;
    while factor > 1.005 {
        let mut better = false;
        for n in 0..best.len() {
            for by in [factor, 1.0 / factor] {
                let mut trial = best;
                trial[n] = (best[n] as f64 * by) as u64;
                let found = loss(trial);
                if found < least {
                    (best, least, better) = (trial, found, true);
                    break;
                }
            }
        }
        if !better {
            factor = factor.sqrt();
        }
    }
    unpack(best)
}

/// The factor of the second computer's kernel, by bisection in thousandths.
pub fn search_traced(scope: MtrrScope, work: Work) -> u64 {
    let wanted = MACBOOK_2015.published(Resync::Deferred)[0].up;
    let (mut low, mut high) = (1_000, 100_000);
    while low < high {
        let middle = (low + high) / 2;
        let model = Model {
            computer: MACBOOK_2015,
            scope,
            mode: Resync::Deferred,
            work: traced(work, middle),
            idle: Idle::Sleep,
            meet: Meet::AtTheEnd,
        };
        if model.run().rows[0].0 < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The work of a kernel that is traced.
pub const fn traced(work: Work, permille: u64) -> Work {
    Work {
        after: work.after * permille / 1000,
        ..work
    }
}

/// Relative error of a simulated figure.
pub fn error(simulated: f64, published: f64) -> f64 {
    simulated / published - 1.0
}

/// Sum of the squared relative errors of the fitted figures.
fn loss(scope: MtrrScope, idle: Idle, work: Work) -> f64 {
    MODES
        .iter()
        .map(|mode| loss_of(first_threads(), scope, idle, *mode, work))
        .sum()
}

/// The first computer up to the AP after the last one that is fitted: the rest has no part in it.
fn first_threads() -> Computer {
    Computer {
        order: &MACBOOK_2012.order[..=FITTED.len()],
        ..MACBOOK_2012
    }
}

fn loss_of(computer: Computer, scope: MtrrScope, idle: Idle, mode: Resync, work: Work) -> f64 {
    let model = Model {
        computer,
        scope,
        mode,
        work,
        idle,
        meet: Meet::AtTheEnd,
    };
    let resumed = model.run();
    let pairs = computer.published(mode).into_iter().zip(resumed.rows);
    pairs
        .filter(|(figure, _)| FITTED.contains(&figure.apic))
        .map(|(figure, (up, next))| {
            let gap = figure.next.map_or(0.0, |published| error(next, published));
            error(up, figure.up).powi(2) + gap.powi(2)
        })
        .sum()
}

const fn unpack([before, after, between, called]: [u64; 4]) -> Work {
    Work {
        before,
        after,
        between,
        called,
    }
}

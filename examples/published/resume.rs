//! Resume after S3 on two computers: published, fitted and predicted times under both hypotheses.

use mtrr_pat::policy::Resync;
use mtrr_pat::sim::MtrrScope;

use super::figures::{Computer, DEFERRED_OVER_EARLY, Figure, MACBOOK_2012, MACBOOK_2015};
use super::fit::{self, FITTED, MODES, error, search, search_traced, traced};
use super::model::{Idle, Meet, Model, Resumed, Work};
use super::progress::Progress;

pub const SCOPES: [MtrrScope; 2] = [MtrrScope::Core, MtrrScope::Thread];

/// A figure counts as explained within this relative error.
const EXPLAINED: f64 = 0.25;

/// One published figure and what each hypothesis makes of it.
#[derive(Clone, Debug)]
pub struct Cell {
    pub mode: Resync,
    pub apic: usize,
    pub what: &'static str,
    pub kind: &'static str,
    pub published: f64,
    /// In the order of [`SCOPES`].
    pub simulated: [f64; 2],
}

impl Cell {
    pub fn errors(&self) -> [f64; 2] {
        self.simulated.map(|value| error(value, self.published))
    }

    fn explained_by(&self) -> &'static str {
        match self.errors().map(|error| error.abs() <= EXPLAINED) {
            [true, true] => "both",
            [true, false] => "core",
            [false, true] => "thread",
            [false, false] => "NEITHER",
        }
    }
}

/// What came out for one computer.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub cells: Vec<Cell>,
    /// Deferred over early, sum of all figures, in the order of [`SCOPES`].
    pub ratio: [f64; 2],
}

impl Comparison {
    /// The median of the absolute relative errors, of all figures or of some.
    pub fn median(&self, scope: usize, only: impl Fn(&Cell) -> bool) -> f64 {
        let cells = self.cells.iter().filter(|cell| only(cell));
        let mut errors: Vec<f64> = cells.map(|cell| cell.errors()[scope].abs()).collect();
        errors.sort_by(f64::total_cmp);
        let middle = errors.len() / 2;
        match errors.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => errors[middle],
            _ => f64::midpoint(errors[middle - 1], errors[middle]),
        }
    }
}

/// Simulates a computer under both hypotheses, with the work each was fitted to.
pub fn compare(computer: Computer, works: [Work; 2], idle: Idle) -> Comparison {
    let run = |scope: usize, mode| -> Resumed {
        let model = Model {
            computer,
            scope: SCOPES[scope],
            mode,
            work: works[scope],
            idle,
            meet: Meet::AtTheEnd,
        };
        model.run()
    };
    let mut cells = Vec::new();
    let mut totals = [[0.0; 2]; 2];
    for (m, mode) in MODES.into_iter().enumerate() {
        let runs = [run(0, mode), run(1, mode)];
        totals[m] = [runs[0].total(), runs[1].total()];
        for (place, figure) in computer.published(mode).iter().enumerate() {
            let [core, thread] = [runs[0].rows[place], runs[1].rows[place]];
            cells.push(cell(
                computer,
                mode,
                figure,
                "to up",
                figure.up,
                [core.0, thread.0],
            ));
            if let Some(next) = figure.next {
                let simulated = [core.1, thread.1];
                cells.push(cell(computer, mode, figure, "to next", next, simulated));
            }
        }
    }
    let ratio = [0, 1].map(|scope| totals[1][scope] / totals[0][scope]);
    Comparison { cells, ratio }
}

fn cell(
    computer: Computer,
    mode: Resync,
    figure: &Figure,
    what: &'static str,
    published: f64,
    simulated: [f64; 2],
) -> Cell {
    let first = computer.name == MACBOOK_2012.name;
    let second_fit = !first && mode == Resync::Deferred && figure.apic == 2 && what == "to up";
    let kind = if figure.apic == 1 && mode == Resync::Early && what == "to up" {
        "given"
    } else if second_fit || (first && FITTED.contains(&figure.apic)) {
        "fitted"
    } else {
        "predicted"
    };
    Cell {
        mode,
        apic: figure.apic,
        what,
        kind,
        published,
        simulated,
    }
}

/// Fits, predicts and prints.
pub fn report() {
    let progress = Progress::new("fit", 600);
    let works = SCOPES.map(|scope| search(scope, Idle::Sleep, || progress.step()));
    drop(progress);
    println!(
        "Resume after S3, milliseconds. \"to up\": start of an AP to its being up; \"to next\": from\n\
         there to the start of the next one, or to the end. Fitted: 4 parameters to the {} figures of\n\
         APIC ids 2, 4, 6 of {}; given: the cached cost, from APIC id 1 early. \"explained\": within\n\
         {:.0} %. The model's laws were chosen with the table in view, its numbers were not.\n",
        4 * FITTED.len(),
        MACBOOK_2012.name,
        100.0 * EXPLAINED
    );
    for (scope, work) in SCOPES.iter().zip(works) {
        print_work(&format!("found, MTRRs per {scope:?}"), work);
    }
    let first = compare(MACBOOK_2012, works, Idle::Sleep);
    print_comparison(&MACBOOK_2012, &first);
    println!(
        "  deferred / early: published {DEFERRED_OVER_EARLY:.2}; per core {:.2} ({:+.0} %), per thread {:.2} ({:+.0} %)\n",
        first.ratio[0],
        100.0 * error(first.ratio[0], DEFERRED_OVER_EARLY),
        first.ratio[1],
        100.0 * error(first.ratio[1], DEFERRED_OVER_EARLY),
    );
    let factors = [0, 1].map(|n| search_traced(SCOPES[n], works[n]));
    println!(
        "One more parameter for the traced kernel of {}: work after the sync times {:.2} (per core) or\n\
         {:.2} (per thread), fitted to its APIC id 2 deferred.",
        MACBOOK_2015.name,
        factors[0] as f64 / 1000.0,
        factors[1] as f64 / 1000.0,
    );
    println!(
        "Its cached share alone is more than APIC id 1 takes: uncached code is slower there than the\n\
         simulator's 300 times. Its gaps are those of another kernel; nothing was fitted to them."
    );
    let traced_works = [0, 1].map(|n| traced(works[n], factors[n]));
    print_comparison(
        &MACBOOK_2015,
        &compare(MACBOOK_2015, traced_works, Idle::Sleep),
    );
    without_sleep();
}

/// The same laws with idle CPUs that poll: then they load the bus, and each other.
fn without_sleep() {
    let progress = Progress::new("fit, idle CPUs polling", 600);
    let works = SCOPES.map(|scope| search(scope, Idle::Poll, || progress.step()));
    drop(progress);
    let other = compare(MACBOOK_2012, works, Idle::Poll);
    println!(
        "\nFor comparison, idle CPUs that poll instead of sleeping, fitted anew: median error per core\n\
         {:.0} %, per thread {:.0} %: cores that are merely online and uncached did not slow the others.",
        100.0 * other.median(0, |_| true),
        100.0 * other.median(1, |_| true),
    );
}

fn print_work(title: &str, work: Work) {
    let uncached = |count: u64| count as f64 / 1e4;
    println!(
        "{title}: before the sync {} ({:.1} ms uncached) per CPU online, after it {} ({:.0} ms);\n\
         \x20 between two APs, per CPU online, {} on the boot CPU ({:.0} ms) and {} on the CPU itself ({:.0} ms uncached)",
        work.before,
        uncached(work.before),
        work.after,
        uncached(work.after),
        work.between,
        work.between as f64 / 3e6,
        work.called,
        uncached(work.called),
    );
}

fn print_comparison(computer: &Computer, comparison: &Comparison) {
    println!(
        "\n{} ({} cores of {} threads)\n  {:<9} {:>4} {:<8} {:>9}  {:<9} {:>9} {:>7} {:>11} {:>7}  explained by",
        computer.name,
        computer.cores,
        computer.threads,
        "mode",
        "apic",
        "",
        "published",
        "kind",
        "per core",
        "error",
        "per thread",
        "error"
    );
    for cell in &comparison.cells {
        let [core, thread] = cell.errors();
        println!(
            "  {:<9} {:>4} {:<8} {:>9.1}  {:<9} {:>9.1} {:>6.0}% {:>11.1} {:>6.0}%  {}",
            format!("{:?}", cell.mode).to_lowercase(),
            cell.apic,
            cell.what,
            cell.published,
            cell.kind,
            cell.simulated[0],
            100.0 * core,
            cell.simulated[1],
            100.0 * thread,
            cell.explained_by(),
        );
    }
    let predicted = |cell: &Cell| cell.kind == "predicted";
    println!(
        "  median error of all {}: per core {:.0} %, per thread {:.0} %; of the {} predicted: {:.0} %, {:.0} %",
        comparison.cells.len(),
        100.0 * comparison.median(0, |_| true),
        100.0 * comparison.median(1, |_| true),
        comparison
            .cells
            .iter()
            .filter(|cell| predicted(cell))
            .count(),
        100.0 * comparison.median(0, predicted),
        100.0 * comparison.median(1, predicted),
    );
}

/// The resume of the first computer, MTRRs per thread, as a picture.
pub fn picture() -> Result<String, Box<dyn std::error::Error>> {
    let panels: Vec<_> = MODES
        .map(|mode| {
            let model = Model {
                computer: MACBOOK_2012,
                scope: MtrrScope::Thread,
                mode,
                work: fit::FOUND,
                idle: Idle::Sleep,
                meet: Meet::AtTheEnd,
            };
            let machine = model.machine();
            model.run_on(&machine);
            let name = format!("{mode:?} resync");
            super::timeline::Panel::of(&machine, &name)
        })
        .into_iter()
        .collect();
    super::timeline::draw(&panels)
}

//! Everything worked out about one machine, once, for all ways to print it.

use mtrr_pat::layout::Plan;
use mtrr_pat::memtype::PatType;

use super::args::{Args, Want};
use super::changes::{self, Change};
use super::differs::{self, Standing};
use super::doubt::Doubt;
use super::findings::{self, Finding, Severity};
use super::goal;
use super::machine::Machine;
use super::map::Map;
use super::plan::{self, Advice};
use super::proposal::{self, Proposal};
use super::repair::{self, Repair};
use super::useless;

/// Ranges that can be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeable {
    /// How many.
    pub count: usize,
    /// From where on addresses must not matter for that.
    pub from: Option<u64>,
}

/// What there is to say.
#[derive(Debug)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// Its effective map, as the registers in the dump give it.
    pub map: Map,
    /// Where that is not certain.
    pub doubt: Doubt,
    /// A note per variable range of the first CPU.
    pub notes: Vec<String>,
    /// What changed from one state in the input to the next.
    pub changes: Vec<Change>,
    /// How CPUs stand against the first.
    pub standings: Vec<Standing>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How few registers would do.
    pub advice: Option<Advice>,
    /// The same with `--want`, and with RAM made write-back.
    pub wanted: Option<Advice>,
    /// The `--want`s.
    pub wants: Vec<Want>,
    /// RAM that has to become write-back.
    pub repair: Option<Repair>,
    /// The layout for what is wanted, or for the repair; or why there is none.
    pub proposal: Option<Result<Proposal, String>>,
    /// The `--type`.
    pub addr: Option<u64>,
    /// The `--pat` that goes with it.
    pub pat: Option<PatType>,
}

impl Report {
    /// Works it all out. `None` when the input has no registers at all.
    pub fn new(machine: Machine, args: &Args) -> Option<Self> {
        let boot = *machine.boot()?;
        let programmed = machine.programmed()?;
        let top_mem2 = goal::forced_end(&boot).map(|_| boot);
        let has_ranges = programmed.variable_ranges().iter().any(|pair| pair.valid());
        // Registers that are off and blank are no layout to improve.
        let whole = machine.map_whole();
        let worth = machine.map_known() && whole && (has_ranges || boot.def_type.enabled());
        let repair = whole.then(|| repair::of(&machine)).flatten();
        let mended = repair.as_ref().map_or(&[][..], |repair| &repair.wants);
        let wants = [mended, &args.want].concat();
        let notes = || useless::notes(&programmed, top_mem2.as_ref(), machine.variable_start());
        let changes = changes::all(&machine);
        Some(Self {
            map: Map::new(&boot),
            doubt: machine.doubt(),
            notes: match machine.gaps.variable() {
                true => Vec::new(),
                false => notes(),
            },
            standings: differs::standings(&machine),
            findings: findings::all(&machine, &changes),
            changes,
            advice: worth.then(|| plan::advise(&machine, &[])),
            wanted: (!wants.is_empty()).then(|| match whole {
                true => plan::advise(&machine, &wants),
                false => Advice {
                    failed: Some(format!("{} not in the input", machine.gaps.named())),
                    ..Advice::default()
                },
            }),
            wants: args.want.clone(),
            repair,
            proposal: (whole && !wants.is_empty()).then(|| proposal::of(&machine, &wants)),
            addr: args.addr,
            pat: args.pat,
            machine,
        })
    }

    /// How many ranges can be freed, exactly or else with addresses above RAM left out.
    pub fn freeable(&self) -> Option<Freeable> {
        let advice = self.advice.as_ref();
        let advice = advice.filter(|_| self.repair.is_none() && !self.machine.is_listed())?;
        let (used, total) = (self.used(), self.total());
        let saved = |plan: &Option<Plan>| {
            let count = plan.as_ref()?.registers().len();
            used.checked_sub(count)
                .filter(|count| *count > 0 && total > 0)
        };
        let exact = saved(&advice.best).map(|count| Freeable { count, from: None });
        let from = advice.free_from.map(|(from, _)| from);
        let relaxed = saved(&advice.relaxed_present).or(saved(&advice.relaxed_best));
        exact.or(relaxed.map(|count| Freeable { count, from }))
    }

    /// Whether no range is free, though fewer would do.
    pub fn crowded(&self) -> bool {
        self.used() == self.total() && self.freeable().is_some()
    }

    /// Variable ranges in use, as far as the dump has them.
    pub fn used(&self) -> usize {
        let boot = self.machine.in_dump();
        boot.map_or(0, |boot| {
            boot.variable_ranges()
                .iter()
                .filter(|pair| pair.valid())
                .count()
        })
    }

    /// Variable ranges that exist.
    pub fn total(&self) -> usize {
        self.machine
            .in_dump()
            .map_or(0, |boot| boot.variable_count())
    }

    /// Whether anything is worse than information.
    pub fn something_wrong(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity < Severity::Info)
    }
}

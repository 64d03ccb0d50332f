//! Everything worked out about one machine, once, for all ways to print it.

use super::args::{Args, Want};
use super::differs::{self, Standing};
use super::doubt::Doubt;
use super::findings::{self, Finding, Severity};
use super::machine::Machine;
use super::map::Map;
use super::plan::{self, Advice};
use super::useless;

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
    /// How CPUs stand against the first.
    pub standings: Vec<Standing>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How few registers would do.
    pub advice: Option<Advice>,
    /// The same with `--want`.
    pub wanted: Option<Advice>,
    /// The `--want`s.
    pub wants: Vec<Want>,
}

impl Report {
    /// Works it all out. `None` when the input has no registers at all.
    pub fn new(machine: Machine, args: &Args) -> Option<Self> {
        let boot = *machine.boot()?;
        let programmed = machine.programmed()?;
        let top_mem2 = plan::forced_end(&machine).map(|_| boot);
        let planned = Map::new(&programmed);
        let has_ranges = programmed.variable_ranges().iter().any(|pair| pair.valid());
        // Registers that are off and blank are no layout to improve.
        let whole = !machine.gaps.variable();
        let worth = machine.map_known() && whole && (has_ranges || boot.def_type.enabled());
        let standings = differs::standings(&machine);
        let findings = findings::all(&machine);
        Some(Self {
            map: Map::new(&boot),
            notes: if whole {
                useless::notes(&programmed, top_mem2.as_ref())
            } else {
                Vec::new()
            },
            doubt: machine.doubt(),
            standings,
            findings,
            advice: worth.then(|| plan::advise(&machine, &planned, &[])),
            wanted: (!args.want.is_empty()).then(|| match whole {
                true => plan::advise(&machine, &planned, &args.want),
                false => Advice {
                    failed: Some(format!("{} not in the input", machine.gaps.named())),
                    ..Advice::default()
                },
            }),
            wants: args.want.clone(),
            machine,
        })
    }

    /// Variable ranges in use.
    pub fn used(&self) -> usize {
        let boot = self.machine.boot();
        boot.map_or(0, |boot| {
            boot.variable_ranges()
                .iter()
                .filter(|pair| pair.valid())
                .count()
        })
    }

    /// Variable ranges that exist.
    pub fn total(&self) -> usize {
        self.machine.boot().map_or(0, |boot| boot.variable_count())
    }

    /// Whether anything is worse than information.
    pub fn something_wrong(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity < Severity::Info)
    }
}

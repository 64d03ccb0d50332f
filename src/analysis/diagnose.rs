//! What is wrong with the memory types of a machine, in plain language.
//!
//! Owns the judgement: findings with severity, addresses, sizes and what to do. Reads snapshots,
//! a memory map if there is one, and nothing else; refuses to change anything.

use core::ops::Range;

use crate::lookup::MtrrMap;
use crate::ranges::PhysBits;
use crate::routing::Routing;
use crate::snapshot::Snapshot;

mod amd;
mod cells;
mod cpus;
mod effects;
mod finding;
mod pat;
mod ram;
mod registers;
mod survey;
mod text;

pub use cpus::{Registers, alike, routed_alike};
pub use finding::{Extent, Finding, Kind, Place, Removal, Severity, Size};
pub use text::Fix;

use cells::Budget;

/// What the snapshots were taken on: the same registers mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The registers decide.
    BareMetal,
    /// CPUID.1:ECX bit 31 is set: the hypervisor decides, and may show MTRRs that do nothing.
    Hypervisor,
}

/// What is known beside the registers.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Bare metal or not.
    pub machine: Machine,
    /// How many address bits the MTRRs should decode, as [`crate::platform`] found it.
    pub width: Option<PhysBits>,
    /// Where RAM is, as the firmware's memory map has it, in any order.
    pub ram: Option<&'a [Range<u64>]>,
    /// Memory that the kernel leaves out since: RAM in it is not used. In any order.
    pub given_up: &'a [Range<u64>],
    /// What only firmware sets: one per snapshot, in the same order. Empty: not known.
    pub routing: &'a [Routing],
}

impl<'a> Context<'a> {
    /// Real hardware, nothing else known.
    #[must_use]
    pub const fn bare_metal() -> Self {
        Self {
            machine: Machine::BareMetal,
            width: None,
            ram: None,
            given_up: &[],
            routing: &[],
        }
    }

    /// A guest, nothing else known.
    #[must_use]
    pub const fn hypervisor() -> Self {
        Self {
            machine: Machine::Hypervisor,
            width: None,
            ram: None,
            given_up: &[],
            routing: &[],
        }
    }

    /// The same with a memory map.
    #[must_use]
    pub const fn with_ram(self, ram: &'a [Range<u64>]) -> Self {
        Self {
            ram: Some(ram),
            ..self
        }
    }

    /// The same with memory that is left out: what a kernel turned reserved, because of its type.
    #[must_use]
    pub const fn with_given_up(self, given_up: &'a [Range<u64>]) -> Self {
        Self { given_up, ..self }
    }

    /// The same with the width the MTRRs should decode.
    #[must_use]
    pub const fn with_width(self, width: PhysBits) -> Self {
        Self {
            width: Some(width),
            ..self
        }
    }

    /// The same with the registers that only firmware sets.
    #[must_use]
    pub const fn with_routing(self, routing: &'a [Routing]) -> Self {
        Self { routing, ..self }
    }

    /// One severity on bare metal, another where a hypervisor decides.
    const fn severity(&self, bare_metal: Severity, hypervisor: Severity) -> Severity {
        match self.machine {
            Machine::BareMetal => bare_metal,
            Machine::Hypervisor => hypervisor,
        }
    }
}

/// Reports what is wrong with these CPUs, a finding at a time.
///
/// `cpus` has one snapshot per CPU, the boot CPU's first; a slice of one will do. The first is
/// examined in depth, the others are compared with it, once for each different state. Whether a
/// range is redundant, without effect or in an undefined overlap is decided exactly, under any
/// masks; with E clear the ranges are judged as if it were set. Takes a bounded number of steps
/// on any register content: [`Kind::Undecided`] says when that was not enough.
///
/// ```
/// use mtrr_pat::diagnose::{Context, Kind, diagnose};
/// use mtrr_pat::ranges::PhysBits;
/// use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
/// use mtrr_pat::snapshot::Snapshot;
///
/// let mut cpu = Snapshot::empty(PhysBits::MIN);
/// cpu.cap = Some(MtrrCap::from_raw(8));
/// cpu.variable[0] = VariableMtrr { base: 0x6, mask: 0xc000_0800 };
/// cpu.def_type = MtrrDefType::from_raw(0); // E is clear
///
/// let mut off = None;
/// diagnose(&[cpu], &Context::bare_metal(), &mut |finding| {
///     if finding.kind == Kind::OffProgrammed {
///         off = Some(finding.to_string());
///     }
/// });
/// assert_eq!(
///     off.unwrap(),
///     "the MTRRs are off (E=0) although ranges are programmed: all memory is uncachable"
/// );
/// ```
pub fn diagnose(cpus: &[Snapshot], context: &Context<'_>, report: &mut impl FnMut(Finding)) {
    let Some(boot) = cpus.first() else {
        return;
    };
    let mut budget = Budget::new();
    if boot.cap.is_some() {
        let map = MtrrMap::new(boot);
        registers::state(boot, context, report);
        ram::covered(boot, &map, context, &mut budget, report);
        registers::types(boot, report);
        registers::geometry(boot, context, report);
        effects::overlaps(boot, &mut budget, report);
        effects::removable(boot, &mut budget, report);
        registers::free(boot, report);
        amd::fixed_dram(boot, report);
        amd::top_of_memory(boot, &map, context, &mut budget, report);
    } else {
        let severity = context.severity(Severity::Error, Severity::Info);
        report(Finding::new(severity, Kind::NoMtrr));
    }
    pat::layout(boot, report);
    cpus::compared(cpus, report);
    cpus::routed(context, report);
    if budget.is_spent() {
        report(Finding::new(Severity::Info, Kind::Undecided));
    }
}

//! CPUs that are not as the first one is.

use core::fmt;

use bitflags::bitflags;

use super::{Context, Finding, Kind, Severity};
use crate::compare::SameMap;
use crate::routing::{Routing, unlike};
use crate::snapshot::Snapshot;

bitflags! {
    /// Groups of registers, as far as two CPUs can differ in them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Registers: u16 {
        /// IA32_MTRRCAP, or whether there are MTRRs at all.
        const CAP = 1 << 0;
        /// IA32_MTRR_DEF_TYPE.
        const DEF_TYPE = 1 << 1;
        /// The fixed ranges.
        const FIXED = 1 << 2;
        /// Variable ranges in use on either CPU.
        const VARIABLE = 1 << 3;
        /// Variable ranges in use on neither: what they hold has no meaning.
        const UNUSED = 1 << 4;
        /// IA32_PAT.
        const PAT = 1 << 5;
        /// AMD SYSCFG.
        const SYSCFG = 1 << 6;
        /// AMD TOP_MEM2.
        const TOP_MEM2 = 1 << 7;
        /// The address width.
        const WIDTH = 1 << 8;
        /// AMD TOP_MEM.
        const TOP_MEM = 1 << 9;
        /// AMD IORRBase and IORRMask.
        const IORR = 1 << 10;
        /// IA32_TME_ACTIVATE.
        const TME_ACTIVATE = 1 << 11;
    }
}

impl Registers {
    /// Whether these can differ without any effect, as long as the maps are the same.
    pub(super) const fn are_harmless(self) -> bool {
        let harmless = Self::UNUSED.union(Self::VARIABLE).union(Self::DEF_TYPE);
        harmless.contains(self)
    }

    /// Whether only firmware can make these the same.
    pub(super) const fn are_firmwares(self) -> bool {
        let memory = Self::SYSCFG.union(Self::TOP_MEM2).union(Self::TOP_MEM);
        let firmwares = memory.union(Self::IORR).union(Self::TME_ACTIVATE);
        !self.is_empty() && firmwares.contains(self)
    }

    /// The groups in which two CPUs may take an address for other memory, in bits that mean
    /// something; what is not known of both is not among them.
    #[must_use]
    pub fn rerouting(one: &Routing, other: &Routing) -> Self {
        let (one, other) = (one.in_effect(), other.in_effect());
        let mut iorrs = one.iorr.into_iter().zip(other.iorr);
        let mut found = Self::empty();
        found.set(Self::TOP_MEM, unlike(one.top_mem, other.top_mem));
        found.set(Self::IORR, iorrs.any(|(one, other)| unlike(one, other)));
        let tme = unlike(one.tme_activate, other.tme_activate);
        found.set(Self::TME_ACTIVATE, tme);
        found
    }

    /// The groups in which two CPUs differ.
    #[must_use]
    pub fn differing(one: &Snapshot, other: &Snapshot) -> Self {
        let mut found = Self::empty();
        found.set(Self::CAP, one.cap != other.cap);
        found.set(Self::DEF_TYPE, one.def_type != other.def_type);
        found.set(Self::FIXED, one.fixed != other.fixed);
        found.set(Self::PAT, one.pat != other.pat);
        found.set(Self::SYSCFG, one.syscfg != other.syscfg);
        found.set(Self::TOP_MEM2, one.top_mem2 != other.top_mem2);
        found.set(Self::WIDTH, one.phys_bits != other.phys_bits);
        let pairs = one.variable.iter().zip(&other.variable);
        for (mine, theirs) in pairs.filter(|(mine, theirs)| mine != theirs) {
            found |= if mine.valid() || theirs.valid() {
                Self::VARIABLE
            } else {
                Self::UNUSED
            };
        }
        found
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Registers, &str); 12] = [
            (Registers::CAP, "MTRRCAP"),
            (Registers::DEF_TYPE, "default type"),
            (Registers::FIXED, "fixed ranges"),
            (Registers::VARIABLE, "variable ranges"),
            (Registers::UNUSED, "unused variable ranges"),
            (Registers::PAT, "PAT"),
            (Registers::SYSCFG, "SYSCFG"),
            (Registers::TOP_MEM2, "TOP_MEM2"),
            (Registers::WIDTH, "address width"),
            (Registers::TOP_MEM, "TOP_MEM"),
            (Registers::IORR, "IORRs"),
            (Registers::TME_ACTIVATE, "TME_ACTIVATE"),
        ];
        let held = NAMES.iter().filter(|(flag, _)| self.contains(*flag));
        for (place, (_, name)) in held.enumerate() {
            f.write_str(if place == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// The CPUs in exactly the state of one of them, itself included, ascending.
pub fn alike(cpus: &[Snapshot], cpu: usize) -> impl Iterator<Item = usize> {
    let state = cpus.get(cpu);
    let same = move |(_, other): &(usize, &Snapshot)| Some(*other) == state;
    cpus.iter().enumerate().filter(same).map(|(place, _)| place)
}

/// Reports each state that is not the first CPU's, once.
pub(super) fn compared(cpus: &[Snapshot], report: &mut impl FnMut(Finding)) {
    let Some(first) = cpus.first() else {
        return;
    };
    for (cpu, other) in cpus.iter().enumerate().skip(1) {
        // The lowest CPU of each state speaks for it.
        if alike(cpus, cpu).next() != Some(cpu) {
            continue;
        }
        let registers = Registers::differing(first, other);
        let map = first.same_map(other);
        let off = first.def_type.enabled() && !other.def_type.enabled();
        let kind = Kind::CpuDiffers {
            cpu,
            count: alike(cpus, cpu).count(),
            registers,
            map,
            off,
        };
        report(Finding::new(severity(registers, map), kind));
    }
}

/// The CPUs that take every address for the same memory as one of them, itself included,
/// ascending.
pub fn routed_alike(routing: &[Routing], cpu: usize) -> impl Iterator<Item = usize> {
    let state = routing.get(cpu).map(|routing| routing.in_effect());
    let same = move |(_, other): &(usize, &Routing)| Some(other.in_effect()) == state;
    let all = routing.iter().enumerate();
    all.filter(same).map(|(place, _)| place)
}

/// Reports each routing that differs from the first CPU's, once.
pub(super) fn routed(context: &Context<'_>, report: &mut impl FnMut(Finding)) {
    let Some(first) = context.routing.first() else {
        return;
    };
    for (cpu, other) in context.routing.iter().enumerate().skip(1) {
        let registers = Registers::rerouting(first, other);
        let speaks = routed_alike(context.routing, cpu).next() == Some(cpu);
        if registers.is_empty() || !speaks {
            continue;
        }
        let kind = Kind::RoutingDiffers {
            cpu,
            count: routed_alike(context.routing, cpu).count(),
            registers,
        };
        let severity = context.severity(Severity::Error, Severity::Info);
        report(Finding::new(severity, kind));
    }
}

/// A difference that can break coherency or send accesses elsewhere is an error; one that has no
/// effect is not.
fn severity(registers: Registers, map: SameMap) -> Severity {
    let routing = Registers::SYSCFG | Registers::TOP_MEM2 | Registers::PAT;
    if map != SameMap::Same || registers.intersects(routing) {
        Severity::Error
    } else if registers.are_harmless() {
        Severity::Info
    } else {
        Severity::Warning
    }
}

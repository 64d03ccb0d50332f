//! CPUs that differ from the first one: in which group of registers, and whether it matters.

use mtrr_pat::compare::SameMap;
use mtrr_pat::regs::MtrrDefType;
use mtrr_pat::snapshot::Snapshot;

use super::gaps;
use super::machine::Machine;

/// How one CPU stands against the first.
#[derive(Debug)]
pub struct Standing {
    /// Its number.
    pub cpu: u32,
    /// Groups whose difference changes what memory is: `fixed`, `variable`, `default`, `pat`,
    /// `syscfg`, `routing`.
    pub differs: Vec<&'static str>,
    /// Groups of which the dump does not show all, of this CPU or of the first.
    pub missing: Vec<&'static str>,
    /// Words differ that change nothing: pairs with V=0, the order of ranges.
    pub harmless: bool,
}

/// Compares every CPU with the first.
pub fn standings(machine: &Machine) -> Vec<Standing> {
    let Some(boot) = machine.boot() else {
        return Vec::new();
    };
    machine
        .cpus
        .iter()
        .zip(&machine.routing)
        .map(|((cpu, other), routing)| {
            let mut differs = groups(boot, other);
            let harmless = differs.is_empty() && !boot.same_words(other);
            if machine.routing[0].differs(routing) {
                differs.push("routing");
            }
            Standing {
                cpu: *cpu,
                differs,
                missing: missing(machine, *cpu),
                harmless,
            }
        })
        .collect()
}

/// The groups of which the dump does not show all, of `cpu` or of the first CPU.
fn missing(machine: &Machine, cpu: u32) -> Vec<&'static str> {
    let (Some(boot), Some(own)) = (machine.boot_regs(), machine.dump.cpus.get(&cpu)) else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    let no_fixed = boot.fixed_enabled == Some(false) && own.fixed_enabled == Some(false)
        || boot.cap.is_some_and(|cap| cap >> 8 & 1 == 0);
    if !(no_fixed || boot.fixed_known() && own.fixed_known()) {
        groups.push("fixed");
    }
    if machine.gaps.variable() || !gaps::same_ranges_shown(boot, own) {
        groups.push("variable");
    }
    if boot.default.is_none() || own.default.is_none() {
        groups.push("default");
    }
    if boot.pat.is_some() != own.pat.is_some() {
        groups.push("pat");
    }
    groups
}

/// The groups of which some CPU does not show all.
pub fn missing_somewhere(standings: &[Standing]) -> Vec<&'static str> {
    let all = ["fixed", "variable", "default", "pat"];
    let lacks = |group: &&str| standings.iter().any(|s| s.missing.contains(group));
    all.into_iter().filter(lacks).collect()
}

/// The groups in which `other` differs from `boot` in effect.
pub fn groups(boot: &Snapshot, other: &Snapshot) -> Vec<&'static str> {
    let mut groups = Vec::new();
    // Each group alone, on registers that are on: what is off differs all the same.
    let mut on = *boot;
    let force = MtrrDefType::E | if boot.has_fixed() { MtrrDefType::FE } else { 0 };
    on.def_type = MtrrDefType::from_raw(boot.def_type.raw() | force);
    if on.fixed != other.fixed {
        groups.push("fixed");
    }
    let mut ranges = on;
    ranges.variable = other.variable;
    ranges.cap = other.cap.or(on.cap);
    if !same(&on, &ranges) {
        groups.push("variable");
    }
    if boot.def_type != other.def_type {
        groups.push("default");
    }
    if boot.pat != other.pat {
        groups.push("pat");
    }
    if boot.syscfg != other.syscfg || boot.top_mem2 != other.top_mem2 {
        groups.push("syscfg");
    }
    groups
}

/// Whether two register files make the same map; words decide where it cannot be worked out.
fn same(a: &Snapshot, b: &Snapshot) -> bool {
    match a.same_map(b) {
        SameMap::Same => true,
        SameMap::Differs(_) => false,
        SameMap::Unproven(_) => a.variable == b.variable,
    }
}

/// One line per kind of difference: the CPUs, by core, and the groups.
pub fn lines(machine: &Machine, standings: &[Standing]) -> Vec<String> {
    let mut kinds: Vec<(Vec<&'static str>, Vec<u32>)> = Vec::new();
    for standing in standings
        .iter()
        .filter(|standing| !standing.differs.is_empty())
    {
        match kinds
            .iter_mut()
            .find(|(groups, _)| *groups == standing.differs)
        {
            Some((_, cpus)) => cpus.push(standing.cpu),
            None => kinds.push((standing.differs.clone(), vec![standing.cpu])),
        }
    }
    kinds
        .into_iter()
        .map(|(groups, cpus)| {
            let word = if cpus.len() == 1 { "differs" } else { "differ" };
            format!("{} {word} in: {}", named(machine, &cpus), groups.join(", "))
        })
        .collect()
}

/// `CPU 1, 3 (core 1), CPU 4 (core 2)`, or plain numbers where the cores are not known.
pub fn named(machine: &Machine, cpus: &[u32]) -> String {
    let cores = &machine.dump.cores;
    if cores.is_empty() {
        let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
        return format!("CPU {}", numbers.join(", "));
    }
    let mut by_core: Vec<((u32, u32), Vec<String>)> = Vec::new();
    for cpu in cpus {
        let core = cores.get(cpu).copied().unwrap_or((0, *cpu));
        match by_core.iter_mut().find(|(known, _)| *known == core) {
            Some((_, list)) => list.push(cpu.to_string()),
            None => by_core.push((core, vec![cpu.to_string()])),
        }
    }
    let many = by_core.iter().any(|((package, _), _)| *package != 0);
    let parts: Vec<String> = by_core
        .into_iter()
        .map(|((package, core), list)| {
            let package = if many {
                format!("package {package} ")
            } else {
                String::new()
            };
            format!("CPU {} ({package}core {core})", list.join(" and "))
        })
        .collect();
    parts.join(", ")
}

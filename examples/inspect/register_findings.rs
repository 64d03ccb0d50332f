//! What the library says of the registers.

use std::ops::Range;

use mtrr_pat::diagnose::{self, Context, Kind, diagnose};
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::snapshot::Snapshot;

use super::causes;
use super::differs;
use super::findings::{Finding, Severity};
use super::known;
use super::machine::Machine;

/// All there is to say of them.
pub fn all(machine: &Machine) -> Vec<Finding> {
    let cpus: Vec<Snapshot> = machine.cpus.iter().map(|(_, snapshot)| *snapshot).collect();
    // Where the fixed ranges are not known, neither is the type of RAM below 1 MiB.
    let floor = if machine.fixed_known { 0 } else { FIXED_END };
    let ram: Vec<Range<u64>> = machine
        .ram
        .iter()
        .map(|(start, end)| (*start).max(floor)..*end)
        .filter(|range| range.start < range.end)
        .collect();
    let mut context = match machine.dump.hypervisor {
        Some(_) => Context::hypervisor(),
        None => Context::bare_metal(),
    };
    if !ram.is_empty() {
        context = context.with_ram(&ram);
    }
    let given_up: Vec<Range<u64>> = machine
        .dump
        .given_up
        .iter()
        .map(|(start, end)| *start..*end)
        .collect();
    context = context.with_given_up(&given_up);
    context = context.with_routing(&machine.routing);
    let doubt = machine.doubt();
    let mut findings = Vec::new();
    diagnose(&cpus, &context, &mut |finding| {
        if known::borne_out(machine, &doubt, &finding) {
            findings.push(finding);
        }
    });
    causes::without_consequences(&mut findings);
    let groups = causes::grouped(findings);
    groups
        .iter()
        .filter_map(|group| of_group(machine, &cpus, group))
        .collect()
}

/// One finding for all in a group.
fn of_group(machine: &Machine, cpus: &[Snapshot], group: &[diagnose::Finding]) -> Option<Finding> {
    let mut finding = translated(machine, cpus, group.first()?);
    let others = group.len() - 1;
    if others > 0 {
        (finding.range, finding.bytes) = causes::extent(group);
        finding.text = causes::together(group).unwrap_or_else(|| match others {
            1 => format!("{} (and one more like it)", finding.text),
            _ => format!("{} (and {others} more like it)", finding.text),
        });
    }
    Some(finding)
}

fn translated(machine: &Machine, cpus: &[Snapshot], finding: &diagnose::Finding) -> Finding {
    Finding {
        severity: match finding.severity {
            diagnose::Severity::Error => Severity::Error,
            diagnose::Severity::Warning => Severity::Warning,
            diagnose::Severity::Info => Severity::Info,
        },
        kind: kebab(&format!("{:?}", finding.kind)),
        range: finding.extent.map(|extent| (extent.start, extent.end - 1)),
        bytes: finding.bytes(),
        text: match finding.kind {
            Kind::CpuDiffers { cpu, .. } => cpu_text(machine, diagnose::alike(cpus, cpu), finding),
            Kind::RoutingDiffers { cpu, .. } => cpu_text(
                machine,
                diagnose::routed_alike(&machine.routing, cpu),
                finding,
            ),
            Kind::NoFreePair { .. } if !machine.count_known => {
                format!("{finding} (if no more exist: the dump does not say)")
            }
            _ => format!("{finding}{}", known::condition(machine, finding)),
        },
        fix: finding.fix().to_string(),
    }
}

/// The finding with the CPUs' own numbers and cores in place of places in a list.
fn cpu_text(
    machine: &Machine,
    places: impl Iterator<Item = usize>,
    finding: &diagnose::Finding,
) -> String {
    let text = finding.to_string();
    let numbers: Vec<u32> = places
        .filter_map(|place| machine.cpus.get(place).map(|(number, _)| *number))
        .collect();
    let boot = machine.cpus.first().map_or(0, |(number, _)| *number);
    let word = if numbers.len() == 1 {
        "differs"
    } else {
        "differ"
    };
    match text.split_once(" from CPU 0 ") {
        Some((_, rest)) => {
            format!(
                "{} {word} from CPU {boot} {rest}",
                differs::named(machine, &numbers)
            )
        }
        None => text,
    }
}

/// `RamNotWriteBack { .. }` as `ram-not-write-back`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take_while(char::is_ascii_alphanumeric) {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

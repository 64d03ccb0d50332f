//! Any bytes as three CPUs and a memory map: diagnose. Nothing may panic or hang, what is said to
//! be removable must leave the map as it is, and no byte of RAM is counted twice.
#![no_main]

mod input;

use input::{Words, register_file, routing};
use libfuzzer_sys::fuzz_target;
use mtrr_pat::compare::SameMap;
use mtrr_pat::diagnose::{Context, Finding, Kind, Removal, diagnose};
use mtrr_pat::regs::{MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

fn check_finding(finding: &Finding) {
    let text = finding.to_string();
    assert!(!text.is_empty() && !finding.fix().to_string().is_empty());
    if let Some(extent) = finding.extent {
        assert!(extent.start < extent.end);
        assert!((1..=extent.end - extent.start).contains(&extent.bytes));
    }
}

/// The registers with E set, as the ranges are judged; and without the pairs that may go.
fn removed(cpu: &Snapshot, found: &[Finding]) -> [Snapshot; 2] {
    let mut on = *cpu;
    on.def_type = MtrrDefType::from_raw(cpu.def_type.raw() | MtrrDefType::E);
    let mut less = on;
    for finding in found {
        if let Kind::Redundant { pair, removal } | Kind::NoEffect { pair, removal, .. } =
            finding.kind
            && removal == Removal::Together
        {
            less.variable[usize::from(pair)].mask &= !VariableMtrr::V;
        }
    }
    [on, less]
}

fuzz_target!(|data: &[u8]| {
    let mut words = Words(data);
    let shape = words.next();
    let ram = [
        words.next()..words.next(),
        words.next()..words.next(),
        words.next() & 0xff_ffff..words.next() & 0xff_ffff,
    ];
    let routing = [(); 3].map(|()| routing(&mut words));
    let boot = register_file(&mut words);
    let mut like = boot;
    like.variable[(shape >> 8) as usize % 40].mask ^= words.next();
    let cpus = [boot, like, register_file(&mut words)];
    let context = if shape & 1 == 0 {
        Context::bare_metal()
    } else {
        Context::hypervisor()
    };
    let context = context.with_width(cpus[2].phys_bits);
    let context = context.with_routing(&routing);
    let context = if shape & 2 == 0 {
        context.with_ram(&ram)
    } else {
        context
    };
    let mut found = Vec::new();
    diagnose(&cpus, &context, &mut |finding| found.push(finding));
    found.iter().for_each(check_finding);

    let [on, less] = removed(&boot, &found);
    assert!(!matches!(on.same_map(&less), SameMap::Differs(_)));

    let all: u64 = ram.iter().fold(0, |sum, range| {
        sum.saturating_add(range.end.saturating_sub(range.start))
    });
    let counted = found.iter().filter(|one| {
        matches!(
            one.kind,
            Kind::RamNotWriteBack { .. } | Kind::RamWriteProtected | Kind::RamBeyondWidth
        )
    });
    assert!(counted.map(Finding::bytes).fold(0, u64::saturating_add) <= all);
});

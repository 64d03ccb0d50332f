//! CPUs that firmware made take addresses for other memory than the first one.

use super::findings;
use super::machines::sound;
use mtrr_pat::diagnose::{Context, Finding, Kind, Registers, Severity, routed_alike};
use mtrr_pat::regs::{Iorr, SysCfg};
use mtrr_pat::routing::Routing;
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const AMD: Routing = Routing {
    top_mem: Some(0x8000_0000),
    iorr: [Some(Iorr { base: 0, mask: 0 }); 2],
    tme_activate: None,
};
const INTEL: Routing = Routing {
    tme_activate: Some(0x0001_0004_0000_0003),
    ..Routing::UNKNOWN
};

/// As many like CPUs without a fault as there are routings.
fn sound_cpus(count: usize) -> Vec<Snapshot> {
    let mut runner = TestRunner::deterministic();
    let machine = sound().new_tree(&mut runner).unwrap().current();
    vec![machine.cpu; count]
}

fn found(routing: &[Routing], context: Context<'_>) -> Vec<Finding> {
    let cpus = sound_cpus(routing.len());
    assert_eq!(findings(&cpus, &context), [], "nothing else is wrong");
    findings(&cpus, &context.with_routing(routing))
}

fn on_bare_metal(routing: &[Routing]) -> Vec<Finding> {
    found(routing, Context::bare_metal())
}

#[test]
fn each_other_routing_is_reported_once_and_says_which_registers_differ() {
    let mut low = AMD;
    low.top_mem = Some(0x4000_0000);
    // Bits the processor ignores do not make it another one.
    let mut low_too = low;
    low_too.top_mem = Some(0x4000_0001);
    let mut both = low;
    both.iorr[1] = Some(Iorr {
        base: 0xd000_0018,
        mask: 0xf000_0800,
    });
    let found = on_bare_metal(&[AMD, low, AMD, both, low_too, low]);
    let expected = [
        (1, 3, Registers::TOP_MEM),
        (3, 1, Registers::TOP_MEM | Registers::IORR),
    ]
    .map(|(cpu, count, registers)| Kind::RoutingDiffers {
        cpu,
        count,
        registers,
    });
    let kinds: Vec<Kind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, expected);
    assert!(found.iter().all(|one| one.severity == Severity::Error));
    let texts: Vec<String> = found.iter().map(Finding::to_string).collect();
    assert_eq!(
        texts,
        [
            "CPU 1 and 2 like it differ from CPU 0 in: TOP_MEM; an address may mean other memory \
             there",
            "CPU 3 differs from CPU 0 in: TOP_MEM, IORRs; an address may mean other memory there",
        ]
    );
    assert!(
        found[0]
            .fix()
            .to_string()
            .starts_with("update the firmware")
    );
    let like: Vec<usize> = routed_alike(&[AMD, low, AMD, both, low_too, low], 4).collect();
    assert_eq!(like, [1, 4, 5]);
}

#[test]
fn memory_encryption_is_compared_and_a_guest_need_not_care() {
    let mut other = INTEL;
    other.tme_activate = Some(0x0001_0006_0000_0003);
    let routing = [INTEL, other];
    let kind = Kind::RoutingDiffers {
        cpu: 1,
        count: 1,
        registers: Registers::TME_ACTIVATE,
    };
    let of_host = on_bare_metal(&routing);
    assert_eq!(of_host.len(), 1);
    assert_eq!(
        (of_host[0].kind, of_host[0].severity),
        (kind, Severity::Error)
    );
    assert!(of_host[0].to_string().contains("in: TME_ACTIVATE;"));
    let of_guest = found(&routing, Context::hypervisor());
    assert_eq!(of_guest.len(), 1);
    assert_eq!(
        (of_guest[0].kind, of_guest[0].severity),
        (kind, Severity::Info)
    );
    assert!(of_guest[0].fix().to_string().starts_with("nothing"));
}

#[test]
fn what_is_not_known_is_not_reported() {
    let mut partly = AMD;
    partly.iorr = [None; 2];
    let nothing: [&[Routing]; 5] = [
        &[AMD, AMD],
        &[AMD, Routing::UNKNOWN],
        &[Routing::UNKNOWN, AMD, INTEL],
        &[AMD, partly, INTEL],
        &[INTEL],
    ];
    for routing in nothing {
        assert_eq!(on_bare_metal(routing), []);
    }
    assert_eq!(
        findings(&sound_cpus(2), &Context::bare_metal().with_routing(&[])),
        []
    );
    // The rest of such a CPU is compared all the same.
    partly.top_mem = Some(0);
    assert_eq!(on_bare_metal(&[AMD, partly]).len(), 1);
}

#[test]
fn what_only_firmware_can_mend_is_not_left_to_the_kernel() {
    let mut cpus = sound_cpus(2);
    for cpu in &mut cpus {
        cpu.syscfg = Some(SysCfg::MTRR_VAR_DRAM_EN);
    }
    cpus[1].syscfg = Some(SysCfg::empty());
    let fix = |cpus: &[Snapshot]| {
        let found = findings(cpus, &Context::bare_metal());
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].fix().to_string()
    };
    assert!(fix(&cpus).starts_with("update the firmware"));
    cpus[1].pat = None;
    assert!(fix(&cpus).starts_with("give it the first CPU's registers"));
}

fn any_routing() -> impl Strategy<Value = Routing> {
    let iorr = || (any::<bool>(), any::<u64>(), any::<u64>());
    let word = || (any::<bool>(), any::<u64>());
    (word(), iorr(), iorr(), word()).prop_map(|(top_mem, first, second, tme)| Routing {
        top_mem: top_mem.0.then_some(top_mem.1),
        iorr: [first, second].map(|(known, base, mask)| known.then_some(Iorr { base, mask })),
        tme_activate: tme.0.then_some(tme.1),
    })
}

proptest! {
    /// On any words: a CPU is named if and only if its routing differs, and those like it once.
    #[test]
    fn any_words(routing in proptest::collection::vec(any_routing(), 1..6), copy in 0..6usize) {
        let mut routing = routing;
        routing.push(routing[copy % routing.len()]);
        let cpus = sound_cpus(routing.len());
        let context = Context::bare_metal().with_routing(&routing);
        let mut named = vec![];
        for finding in findings(&cpus, &context) {
            let Kind::RoutingDiffers { cpu, count, registers } = finding.kind else {
                panic!("{finding:?}");
            };
            let like: Vec<usize> = routed_alike(&routing, cpu).collect();
            prop_assert_eq!((like[0], like.len()), (cpu, count));
            prop_assert!(!registers.is_empty());
            named.extend(like);
        }
        named.sort_unstable();
        let differ = |cpu: &usize| routing[0].differs(&routing[*cpu]);
        let expected: Vec<usize> = (0..routing.len()).filter(differ).collect();
        prop_assert_eq!(named, expected);
    }
}

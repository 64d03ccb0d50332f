//! Any bytes as the register files of two CPUs: look up, iterate, compare. Nothing may panic or
//! hang, and the answers must agree with each other.
#![no_main]

mod input;

use input::{Words, register_file, routing};
use libfuzzer_sys::fuzz_target;
use mtrr_pat::combine::{CombineRule, Effective};
use mtrr_pat::compare::SameMap;
use mtrr_pat::diagnose::Registers;
use mtrr_pat::lookup::{MtrrMap, PageSize, Uniformity};
use mtrr_pat::memtype::PatType;
use mtrr_pat::regs::MtrrDefType;
use mtrr_pat::routing::Routing;
use mtrr_pat::snapshot::Snapshot;

/// Steps of a lazy iterator: enough for any map without holes, and a bound on the time that one
/// with holes takes.
fn steps(snapshot: &Snapshot) -> usize {
    let mut ranges = snapshot.variable_ranges().iter();
    let holes = ranges.any(|range| range.valid() && range.block(snapshot.phys_bits).is_none());
    if holes { 24 } else { 300 }
}

fn check_runs(map: &MtrrMap, steps: usize) {
    let mut next = 0;
    for run in map.runs().take(steps) {
        assert!(run.start == next && run.end > run.start && run.end <= map.end());
        assert_eq!(map.at(run.start).memtype, run.memtype);
        assert_eq!(map.at(run.end - 1).memtype, run.memtype);
        next = run.end;
    }
}

fn check_at(map: &MtrrMap, addr: u64) {
    let at = map.at(addr);
    assert_eq!(map.over(addr..addr).uniform(), Some(at.memtype));
    for rule in [CombineRule::Intel, CombineRule::Amd] {
        for pat in PatType::ALL {
            let page = Effective::combine(at.memtype, pat, rule).page;
            assert!(!page.is_cacheable() || at.memtype.defined().is_some());
        }
    }
    let size = map.largest_page(addr);
    if size > PageSize::Size4K {
        let start = addr & !(size.bytes() - 1);
        assert_eq!(map.at(start).memtype, at.memtype);
        assert_eq!(map.at(start + size.bytes() - 1).memtype, at.memtype);
    }
    if let Uniformity::Mixed(run) = map.over(addr..u64::MAX) {
        assert_ne!(map.at(run.end).memtype, run.memtype);
    }
}

fn check_routing(one: &Routing, two: &Routing) {
    let differs = one.differs(two);
    assert_eq!(differs, two.differs(one));
    assert_eq!(differs, !Registers::rerouting(one, two).is_empty());
    assert!(!one.differs(&one.in_effect()) && !one.differs(&Routing::UNKNOWN));
    assert_eq!(one.in_effect().in_effect(), one.in_effect());
    assert!(!differs || one.in_effect() != two.in_effect());
}

fuzz_target!(|data: &[u8]| {
    let mut words = Words(data);
    let addr = words.next();
    check_routing(&routing(&mut words), &routing(&mut words));
    let one = register_file(&mut words);
    // What is left of the input changes a copy: the second CPU.
    let mut two = one;
    while !words.0.is_empty() {
        let (place, value) = (words.next(), words.next());
        match place % 44 {
            40 => two.def_type = MtrrDefType::from_raw(value),
            41 => two.top_mem2 = value,
            42 => two.fixed[(place >> 8) as usize % 11] = value,
            43 => two = register_file(&mut words),
            pair if place & 0x100 == 0 => two.variable[pair as usize].base = value,
            pair => two.variable[pair as usize].mask = value,
        }
    }
    let (first, second) = (MtrrMap::new(&one), MtrrMap::new(&two));
    for addr in [addr, addr >> 12, addr & 0xf_ffff, addr % first.end()] {
        check_at(&first, addr);
    }
    check_runs(&first, steps(&one));
    for found in first
        .differences(&second)
        .take(steps(&one).min(steps(&two)))
    {
        assert!(found.start < found.end && found.first != found.second);
        assert_eq!(first.at(found.start).memtype, found.first);
        assert_eq!(second.at(found.end - 1).memtype, found.second);
    }
    assert_eq!(one.same_map(&one), SameMap::Same);
    if let SameMap::Differs(found) = one.same_map(&two) {
        assert_ne!(
            first.at(found.start).memtype,
            second.at(found.start).memtype
        );
        assert!(!one.same_words(&two));
    }
});

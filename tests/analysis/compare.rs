//! Two CPUs: the same words, the same map, and where the maps differ.

use mtrr_pat::compare::{Difference, SameMap};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use crate::oracle::{Rng, edges, page_type, register_file};

const PAGE: u64 = 0x1000;
const WB: MtrrType = MtrrType::Defined(MemType::WriteBack);
const UC: MtrrType = MtrrType::Defined(MemType::Uncachable);

/// A 36-bit machine: WB below 2 GiB, a hole of UC at the top of it, UC elsewhere.
fn machine() -> Snapshot {
    let mut snapshot = Snapshot::empty(PhysBits::new(36).unwrap());
    snapshot.cap = Some(MtrrCap::from_raw(0x508));
    snapshot.def_type = MtrrDefType::from_raw(0xc00);
    snapshot.fixed = [0x0606_0606_0606_0606; 11];
    snapshot.pat = Some(Pat::POWER_ON);
    snapshot.variable[0] = VariableMtrr {
        base: 6,
        mask: 0xf_8000_0800,
    };
    snapshot.variable[1] = VariableMtrr {
        base: 0x7f00_0000,
        mask: 0xf_ff00_0800,
    };
    snapshot
}

fn differences(one: &Snapshot, two: &Snapshot) -> Vec<Difference> {
    MtrrMap::new(one).differences(&MtrrMap::new(two)).collect()
}

/// What the report on "inconsistent" CPUs was about: bases of pairs whose V is 0.
#[test]
fn pairs_not_in_use_differ_in_words_only() {
    let one = machine();
    let mut two = one;
    two.variable[5] = VariableMtrr {
        base: 0x1234_5006,
        mask: 0xf_ffff_f000,
    };
    assert!(one.same_words(&one));
    assert!(!one.same_words(&two));
    assert_eq!(one.same_map(&two), SameMap::Same);
    assert_eq!(differences(&one, &two), []);
}

#[test]
fn order_redundancy_and_bits_under_the_mask_do_not_matter() {
    let one = machine();
    let mut two = one;
    two.variable.swap(0, 3);
    two.variable[7] = VariableMtrr {
        base: 0x4000_0006,
        mask: 0xf_c000_0800,
    };
    two.variable[1].base |= 0xf000;
    two.variable[2] = VariableMtrr {
        base: 0x1_0000_0000,
        mask: 0xf_0000_0800,
    };
    assert_eq!(one.same_map(&two), SameMap::Same);
    // The PAT is another question.
    two.pat = Some(Pat::LINUX);
    assert_eq!(one.same_map(&two), SameMap::Same);
    assert!(!one.same_words(&two));
}

#[test]
fn an_ap_never_programmed() {
    let boot = machine();
    let mut ap = Snapshot::empty(boot.phys_bits);
    ap.cap = boot.cap;
    let want = Difference {
        start: 0,
        end: 0x7f00_0000,
        first: WB,
        second: UC,
    };
    assert_eq!(boot.same_map(&ap), SameMap::Differs(want));
    assert_eq!(differences(&boot, &ap), [want]);
    assert_eq!(want.to_string(), "0x0-0x7effffff write-back and uncachable");
}

#[test]
fn one_fixed_field_and_one_range() {
    let one = machine();
    let mut two = one;
    two.fixed[3] = 0x0606_0606_0600_0606;
    two.variable[1].mask = 0;
    assert_eq!(
        differences(&one, &two),
        [
            Difference {
                start: 0xc_2000,
                end: 0xc_3000,
                first: WB,
                second: UC
            },
            Difference {
                start: 0x7f00_0000,
                end: 0x8000_0000,
                first: UC,
                second: WB
            },
        ]
    );
}

#[test]
fn another_width_is_another_map() {
    let one = machine();
    let mut two = one;
    two.phys_bits = PhysBits::new(39).unwrap();
    // The masks of 36 bits leave bits 38:36 free there: aliases.
    let all = differences(&one, &two);
    assert_eq!(all.first().map(|one| one.start), Some(1 << 36));
    assert_eq!(all.last().map(|one| one.end), Some(1 << 39));
}

/// Two masks with holes that agree for ever: the same set of ranges is seen at once, another set
/// with the same meaning is not guessed about.
#[test]
fn endless_agreement_is_bounded() {
    let mut one = machine();
    one.variable[0] = VariableMtrr {
        base: 0x1006,
        mask: 0x1800,
    };
    let mut two = one;
    two.variable.swap(0, 4);
    assert_eq!(one.same_map(&two), SameMap::Same);
    // Stripes of two pages, once as one range and once as two.
    one.variable[0] = VariableMtrr {
        base: 0x2006,
        mask: 0x2800,
    };
    two.variable[4] = VariableMtrr {
        base: 0x2006,
        mask: 0x3800,
    };
    two.variable[5] = VariableMtrr {
        base: 0x3006,
        mask: 0x3800,
    };
    let (first, second) = (MtrrMap::new(&one), MtrrMap::new(&two));
    assert!(matches!(one.same_map(&two), SameMap::Unproven(addr) if addr > 0x10_0000));
    let mut all = first.differences(&second);
    assert_eq!(all.next(), None);
    assert!(all.unfinished().is_some());
    assert_eq!(all.next(), None);
    // A difference above that is found from a snapshot that can be walked to it.
    two.variable[5].mask = 0;
    assert!(matches!(one.same_map(&two), SameMap::Differs(found) if found.start == 0x10_3000));
}

/// A copy with one thing changed, or another file altogether.
fn relative(one: &Snapshot, rng: &mut Rng) -> Snapshot {
    let mut two = *one;
    let slot = rng.below(12) as usize;
    match rng.below(6) {
        0 => {
            return Snapshot {
                phys_bits: one.phys_bits,
                ..register_file(rng)
            };
        }
        1 => two.variable[slot].base ^= 1 << rng.below(52),
        2 => two.variable[slot].mask ^= 1 << rng.below(52),
        3 => two.fixed[slot % 11] ^= 1 << rng.below(64),
        4 => two.def_type = MtrrDefType::from_raw(one.def_type.raw() ^ 1 << rng.below(12)),
        _ => two.top_mem2 ^= 1 << rng.below(52),
    }
    two
}

/// The differences are where the evaluator, asked page by page or at every edge, says so.
#[test]
fn random_pairs_against_the_evaluator() {
    let mut rng = Rng(99);
    let (mut same, mut differ) = (0, 0);
    for _ in 0..20_000 {
        let one = register_file(&mut rng);
        let two = relative(&one, &mut rng);
        let (first, second) = (MtrrMap::new(&one), MtrrMap::new(&two));
        let mut iterator = first.differences(&second);
        let found: Vec<Difference> = iterator.by_ref().take(200).collect();
        let end = if found.len() < 200 {
            iterator.unfinished()
        } else {
            found.last().map(|one| one.end)
        };
        let mut places = edges(&one, &mut rng);
        places.extend(edges(&two, &mut rng));
        places.extend((0..16).map(|page| (rng.0 & 0xf_f000) | (page * PAGE)));
        places.extend(found.iter().flat_map(|one| [one.start, one.end - 1]));
        for place in places
            .into_iter()
            .filter(|place| end.is_none_or(|end| *place < end))
        {
            let types = (page_type(&one, place), page_type(&two, place));
            let inside = found
                .iter()
                .find(|one| (one.start..one.end).contains(&place));
            match inside {
                Some(one) => assert_eq!((one.first, one.second), types, "{place:#x}"),
                None => assert_eq!(types.0, types.1, "{place:#x} {one:?} {two:?}"),
            }
        }
        assert!(
            found
                .iter()
                .all(|one| one.first != one.second && one.start < one.end)
        );
        assert!(found.windows(2).all(|two| two[0].end <= two[1].start));
        match one.same_map(&two) {
            SameMap::Same => same += 1,
            SameMap::Differs(difference) => {
                assert_eq!(Some(&difference), found.first());
                differ += 1;
            }
            SameMap::Unproven(_) => assert!(found.is_empty()),
        }
    }
    assert!(same > 1000 && differ > 1000, "{same} {differ}");
}

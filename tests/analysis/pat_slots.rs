//! A stand-in for a type that the PAT lacks never caches more than the type would have, and
//! combines writes only where the type would have: under every MTRR type, by either table.

use mtrr_pat::combine::{CombineRule, Effective, PageType};
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::pat::{Pat, Slot};
use proptest::prelude::*;

/// What memory of a type allows: reads held in a cache, writes held in a cache, writes combined.
fn allows(page: PageType) -> [bool; 3] {
    match page {
        PageType::Uncachable | PageType::CacheDisabled => [false, false, false],
        PageType::WriteCombining => [false, false, true],
        PageType::WriteThrough | PageType::WriteProtected => [true, false, false],
        PageType::WriteBack => [true, true, false],
    }
}

fn never_more(granted: PatType, wanted: PatType) -> bool {
    [CombineRule::Intel, CombineRule::Amd]
        .into_iter()
        .all(|rule| {
            MemType::ALL.into_iter().all(|mtrr| {
                let with = |pat| allows(Effective::combine(mtrr.into(), pat, rule).page);
                let (granted, wanted) = (with(granted), with(wanted));
                granted
                    .into_iter()
                    .zip(wanted)
                    .all(|(more, less)| less || !more)
            })
        })
}

/// A PAT that holds exactly the types of which the bit is set, in any of their slots.
fn holding(set: usize, start: usize) -> Pat {
    let types: Vec<PatType> = (0..6)
        .filter(|n| set & (1 << n) != 0)
        .map(|n| PatType::ALL[n])
        .collect();
    Pat::from_types(core::array::from_fn(|slot| {
        types[(slot + start) % types.len()]
    }))
}

#[test]
fn a_stand_in_is_never_stronger() {
    for set in 1..64 {
        for start in 0..6 {
            let pat = holding(set, start);
            for wanted in PatType::ALL {
                let held = pat.find(wanted).is_some();
                let Ok(choice) = pat.choose(wanted) else {
                    // Only where neither the type nor UC is there.
                    assert!(!held && pat.find(PatType::Uncachable).is_none());
                    continue;
                };
                assert_eq!(choice.is_exact(), held, "{pat} {wanted}");
                assert_eq!(pat.slot(choice.slot.index()), Ok(choice.granted));
                assert!(
                    never_more(choice.granted, wanted),
                    "{pat} {wanted}: {choice}"
                );
            }
        }
    }
}

/// UC- would be too strong for these: under WC memory it combines writes.
#[test]
fn uc_minus_is_no_stand_in_for_uc() {
    for wanted in [
        PatType::Uncachable,
        PatType::WriteThrough,
        PatType::WriteProtected,
    ] {
        assert!(!never_more(PatType::UncachedMinus, wanted), "{wanted}");
    }
    assert!(never_more(PatType::UncachedMinus, PatType::WriteCombining));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Entries keep everything but the bits that select the slot.
    #[test]
    fn entries_keep_their_other_bits(entry: u64, index in 0..8u8) {
        let slot = Slot::new(index).unwrap();
        for (changed, mask, read) in [
            (slot.in_4k(entry), Slot::MASK_4K, Slot::of_4k as fn(u64) -> Slot),
            (slot.in_large(entry), Slot::MASK_LARGE, Slot::of_large),
        ] {
            prop_assert_eq!(read(changed), slot);
            prop_assert_eq!(changed & !mask, entry & !mask);
        }
        // By the book: PAT*4 + PCD*2 + PWT.
        let bit = |n: u32| (entry >> n & 1) as u8;
        prop_assert_eq!(Slot::of_4k(entry).index(), bit(7) * 4 + bit(4) * 2 + bit(3));
        prop_assert_eq!(Slot::of_large(entry).index(), bit(12) * 4 + bit(4) * 2 + bit(3));
        prop_assert_eq!(Slot::of_table(entry).index(), bit(4) * 2 + bit(3));
    }

    /// Whatever a PAT holds, what is found is what was asked for.
    #[test]
    fn what_is_found_is_there(raw: u64) {
        let pat = Pat::from_raw(raw);
        for wanted in PatType::ALL {
            let first = (0..8).find(|index| pat.slot(*index) == Ok(wanted));
            prop_assert_eq!(pat.find(wanted).map(Slot::index), first);
            let for_table = first.filter(|index| *index < 4);
            prop_assert_eq!(pat.find_for_table(wanted).map(Slot::index), for_table);
        }
        let legal = raw.to_le_bytes().iter().all(|byte| matches!(byte, 0 | 1 | 4..=7));
        prop_assert_eq!(Pat::validate(raw).is_ok(), legal);
    }
}

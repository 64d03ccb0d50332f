//! Reservations seen from outside: the framebuffer story, and any history against the obvious
//! model, which keeps a list of requests and looks at every page.

use std::collections::BTreeMap;
use std::ops::Range;

use mtrr_pat::combine::{CombineRule, Effective, PageType};
use mtrr_pat::lookup::{MtrrMap, Uniformity};
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::reserve::{
    Grant, Granted, OnConflict, Request, Reservations, ReserveError, WriteCombining,
};
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

const BITS: PhysBits = PhysBits::MIN;

/// RAM is WB below 2 GiB; what is above is UC, but for the ranges given.
fn machine(ranges: &[(u64, u64, MemType)]) -> MtrrMap {
    let mut snapshot = Snapshot::empty(BITS);
    snapshot.cap = Some(MtrrCap::from_raw(0x508));
    snapshot.def_type = MtrrDefType::from_raw(MtrrDefType::E);
    let ram = (0, 0x8000_0000, MemType::WriteBack);
    let all = [&[ram], ranges].concat();
    for (slot, (base, size, memtype)) in snapshot.variable.iter_mut().zip(all) {
        *slot = VariableMtrr::from_block(base, size, memtype, BITS).unwrap();
    }
    MtrrMap::new(&snapshot)
}

fn effective(grant: &Grant) -> Option<PageType> {
    grant.effective.map(|effective| effective.page)
}

/// A framebuffer is mapped write-combining; a second mapping of the same BAR as uncached changed
/// nothing, for the range was reserved already. It must be told so.
#[test]
fn the_second_mapping_of_a_framebuffer() {
    let map = machine(&[]);
    let mut table = Reservations::<8>::new(WriteCombining::Allowed);
    let bar = 0x9000_0000..0x9080_0000;
    let first = Request::new(bar.clone(), PatType::WriteCombining);
    let grant = table.reserve(&first, &map, CombineRule::Intel).unwrap();
    assert!(grant.is_as_wanted());
    assert_eq!(effective(&grant), Some(PageType::WriteCombining));

    for uncached in [PatType::Uncachable, PatType::UncachedMinus] {
        let second = Request::or_existing(bar.clone(), uncached);
        let grant = table.reserve(&second, &map, CombineRule::Intel).unwrap();
        assert_eq!(grant.memtype, PatType::WriteCombining);
        assert_eq!(grant.granted, Granted::Existing);
        assert!(!grant.is_as_wanted());
        assert_eq!(effective(&grant), Some(PageType::WriteCombining));
        assert_eq!(
            grant.to_string(),
            format!(
                "0x90000000-0x907fffff write-combining, not {uncached}: it is already reserved \
                 so; effectively write-combining"
            )
        );
    }
    // A part of it, asked for exactly: refused, and the owner is named.
    let exact = Request::new(0x9040_0000..0x9040_1000, PatType::Uncachable);
    let error = table.reserve(&exact, &map, CombineRule::Intel).unwrap_err();
    assert_eq!(
        error.to_string(),
        "uncachable was wanted, but 0x90000000-0x907fffff write-combining (3 times) is reserved"
    );
    // Once all three are gone, the range is free for any type.
    for left in [2, 1, 0] {
        assert_eq!(table.release(bar.clone()), Ok(left));
    }
    assert!(table.is_empty());
    let grant = table.reserve(&exact, &map, CombineRule::Intel).unwrap();
    assert!(grant.is_as_wanted());
}

/// With `nowc`, nobody gets write-combining from a page table.
#[test]
fn write_combining_refused_by_policy() {
    let map = machine(&[(0xc000_0000, 0x1000_0000, MemType::WriteCombining)]);
    let mut table = Reservations::<8>::new(WriteCombining::Refused);
    let bar = Request::new(0x9000_0000..0x9080_0000, PatType::WriteCombining);
    let grant = table.reserve(&bar, &map, CombineRule::Amd).unwrap();
    assert_eq!(grant.memtype, PatType::UncachedMinus);
    assert_eq!(grant.granted, Granted::WriteCombiningRefused);
    assert_eq!(effective(&grant), Some(PageType::Uncachable));
    // A second such request agrees with the first.
    assert!(table.reserve(&bar, &map, CombineRule::Amd).is_ok());
    // Where the firmware made an MTRR range WC, UC- comes to WC, and the answer says so.
    let bar = Request::new(0xc000_0000..0xc080_0000, PatType::WriteCombining);
    let grant = table.reserve(&bar, &map, CombineRule::Amd).unwrap();
    assert_eq!(grant.memtype, PatType::UncachedMinus);
    assert_eq!(effective(&grant), Some(PageType::WriteCombining));
}

#[test]
fn what_the_mtrrs_make_of_it() {
    let map = machine(&[]);
    let mut table = Reservations::<8>::new(WriteCombining::Allowed);
    let across = 0x7fff_0000..0x8001_0000;
    let request = Request::new(across.clone(), PatType::WriteBack);
    let grant = table.reserve(&request, &map, CombineRule::Intel).unwrap();
    assert!(matches!(grant.mtrr, Uniformity::Mixed(_)));
    assert_eq!(grant.effective, None);
    assert_eq!(
        grant.to_string(),
        "0x7fff0000-0x8000ffff write-back; mixed by the MTRRs"
    );
    table.release(across.clone()).unwrap();
    // UC makes one type of both parts, on Intel.
    let request = Request::new(across, PatType::Uncachable);
    let grant = table.reserve(&request, &map, CombineRule::Intel).unwrap();
    assert!(matches!(grant.mtrr, Uniformity::Mixed(_)));
    assert_eq!(effective(&grant), Some(PageType::Uncachable));
}

/// Above the address width there is no type to combine with.
#[test]
fn across_the_end_of_the_address_space() {
    let map = machine(&[]);
    let mut table = Reservations::<2>::new(WriteCombining::Allowed);
    let end = BITS.end();
    let request = Request::new(end - 0x1000..end + 0x1000, PatType::Uncachable);
    let grant = table.reserve(&request, &map, CombineRule::Intel).unwrap();
    assert_eq!(grant.effective, None);
}

#[test]
fn errors_name_what_is_wrong() {
    let map = machine(&[]);
    let mut table = Reservations::<2>::new(WriteCombining::Allowed);
    let mut ask = |range, wanted| {
        table
            .reserve(
                &Request::or_existing(range, wanted),
                &map,
                CombineRule::Intel,
            )
            .map_err(|error| error.to_string())
    };
    assert!(ask(0x1000..0x2000, PatType::WriteBack).is_ok());
    assert!(ask(0x2000..0x3000, PatType::Uncachable).is_ok());
    assert_eq!(
        ask(0x1fff..0x2001, PatType::WriteBack).unwrap_err(),
        "no one type will do: 0x1000-0x1fff write-back and 0x2000-0x2fff uncachable are reserved"
    );
    assert_eq!(
        ask(0x8000..0x9000, PatType::WriteBack).unwrap_err(),
        "all 2 places for memory types are taken"
    );
    // The same pages again need no place.
    assert_eq!(ask(0x1234..0x1235, PatType::WriteBack).unwrap().count, 2);
    assert!(ask(5..5, PatType::WriteBack).is_err());
    assert!(ask(0..u64::MAX, PatType::WriteBack).is_err());
    assert_eq!(
        table.release(0x1000..0x3000).unwrap_err(),
        ReserveError::NotReserved {
            start: 0x1000,
            end: 0x3000
        }
    );
    assert_eq!(
        Reservations::<0>::new(WriteCombining::Allowed).capacity(),
        0
    );
}

const PAGES: u64 = 24;
/// The pages of the model lie across the end of the WB memory.
const FIRST: u64 = 0x8000_0000 - 8 * 0x1000;
const PLACES: usize = 6;

/// The obvious model: every request that is held, and for each page a look at all of them.
#[derive(Default)]
struct Model {
    held: Vec<(Range<u64>, PatType)>,
}

impl Model {
    fn types_of(&self, page: u64) -> Vec<PatType> {
        let held = self.held.iter();
        held.filter(|(range, _)| range.contains(&page))
            .map(|(_, memtype)| *memtype)
            .collect()
    }

    fn ranges(&self) -> BTreeMap<(u64, u64), u32> {
        let mut ranges = BTreeMap::new();
        for (range, _) in &self.held {
            *ranges.entry((range.start, range.end)).or_default() += 1;
        }
        ranges
    }

    /// The type a request gets, if it gets one.
    fn reserve(
        &mut self,
        range: Range<u64>,
        wanted: PatType,
        mode: OnConflict,
    ) -> Result<PatType, &'static str> {
        let pages = range.clone();
        let mut found: Vec<PatType> = pages.flat_map(|page| self.types_of(page)).collect();
        found.sort();
        found.dedup();
        let memtype = match (found.as_slice(), mode) {
            ([], _) => wanted,
            ([one], _) if *one == wanted => wanted,
            ([one], OnConflict::AcceptExisting) => *one,
            ([_], OnConflict::Exact) => return Err("conflict"),
            _ => return Err("several"),
        };
        let known = self.ranges();
        if !known.contains_key(&(range.start, range.end)) && known.len() == PLACES {
            return Err("full");
        }
        self.held.push((range, memtype));
        Ok(memtype)
    }

    fn release(&mut self, range: &Range<u64>) -> Option<u32> {
        let at = self.held.iter().position(|(held, _)| held == range)?;
        self.held.remove(at);
        let left = self.held.iter().filter(|(held, _)| held == range).count();
        Some(left as u32)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(Range<u64>, PatType, OnConflict),
    Release(Range<u64>),
}

fn any_step() -> impl Strategy<Value = Step> {
    let range = (0..PAGES, 1..6u64).prop_map(|(start, len)| start..(start + len).min(PAGES));
    let memtype = proptest::sample::select(PatType::ALL.as_slice());
    let mode = proptest::sample::select([OnConflict::Exact, OnConflict::AcceptExisting].to_vec());
    prop_oneof![
        (range.clone(), memtype, mode).prop_map(|(r, t, m)| Step::Reserve(r, t, m)),
        range.prop_map(Step::Release),
    ]
}

fn bytes(pages: &Range<u64>) -> Range<u64> {
    FIRST + pages.start * 0x1000..FIRST + pages.end * 0x1000
}

/// What every page of the range has by MTRRs and page table, if that is one type.
fn effective_by_page(
    pages: &Range<u64>,
    memtype: PatType,
    map: &MtrrMap,
    rule: CombineRule,
) -> Option<PageType> {
    let of_page = |page| {
        let mtrr = map.at(FIRST + page * 0x1000).memtype;
        Effective::combine(mtrr, memtype, rule).page
    };
    let mut types: Vec<PageType> = pages.clone().map(of_page).collect();
    types.dedup();
    (types.len() == 1).then(|| types[0])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any history of requests and releases: same grants, same refusals, same pages held.
    #[test]
    fn any_history_is_as_the_page_model_has_it(
        steps in proptest::collection::vec(any_step(), 1..60),
        nowc: bool,
        amd: bool,
    ) {
        let policy = if nowc { WriteCombining::Refused } else { WriteCombining::Allowed };
        let rule = if amd { CombineRule::Amd } else { CombineRule::Intel };
        let map = machine(&[(0x8000_0000, 0x4000, MemType::WriteCombining)]);
        let mut table = Reservations::<PLACES>::new(policy);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Reserve(pages, wanted, on_conflict) => {
                    let request = Request { range: bytes(&pages), wanted, on_conflict };
                    let got = table.reserve(&request, &map, rule);
                    let refused = nowc && wanted == PatType::WriteCombining;
                    let after_policy = if refused { PatType::UncachedMinus } else { wanted };
                    match model.reserve(pages.clone(), after_policy, on_conflict) {
                        Ok(memtype) => {
                            let grant = got.unwrap();
                            prop_assert_eq!(grant.memtype, memtype);
                            prop_assert_eq!(grant.is_as_wanted(), memtype == wanted);
                            let count = model.ranges()[&(pages.start, pages.end)];
                            prop_assert_eq!(grant.count, count);
                            let by_page = effective_by_page(&pages, memtype, &map, rule);
                            prop_assert_eq!(effective(&grant), by_page);
                            prop_assert!(!nowc || memtype != PatType::WriteCombining);
                        }
                        Err("conflict") => {
                            let as_model = matches!(got, Err(ReserveError::Conflict { .. }));
                            prop_assert!(as_model);
                        }
                        Err("several") => {
                            let as_model = matches!(got, Err(ReserveError::SeveralTypes { .. }));
                            prop_assert!(as_model);
                        }
                        Err(_) => {
                            prop_assert_eq!(got, Err(ReserveError::Full { capacity: PLACES }));
                        }
                    }
                }
                Step::Release(pages) => {
                    prop_assert_eq!(table.release(bytes(&pages)).ok(), model.release(&pages));
                }
            }
            for page in 0..PAGES {
                let held = model.types_of(page);
                prop_assert!(held.windows(2).all(|two| two[0] == two[1]), "one type per page");
                prop_assert_eq!(table.memtype_at(FIRST + page * 0x1000), held.first().copied());
            }
            prop_assert_eq!(table.len(), model.ranges().len());
        }
    }
}

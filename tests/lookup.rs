//! The lookup against an evaluator that does the obvious thing for every page.

use mtrr_pat::lookup::{MtrrMap, PageSize, Run, Source, Uniformity};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

#[path = "lookup/oracle.rs"]
mod oracle;

use oracle::{Rng, page_type};

const PAGE: u64 = 0x1000;
const WB: u64 = 6;
const UC: u64 = 0;
const E: u64 = 1 << 11;
const FE: u64 = 1 << 10;

fn bits(width: u8) -> PhysBits {
    PhysBits::new(width).unwrap()
}

/// A machine with MTRRs on, without fixed ranges.
fn machine(width: u8, default: u64, ranges: &[(u64, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::empty(bits(width));
    snapshot.cap = Some(MtrrCap::from_raw(ranges.len() as u64));
    snapshot.def_type = MtrrDefType::from_raw(E | default);
    for (slot, &(base, mask)) in snapshot.variable.iter_mut().zip(ranges) {
        *slot = VariableMtrr { base, mask };
    }
    snapshot
}

/// The runs of `pages` pages from `start`, page by page.
fn runs_by_page(snapshot: &Snapshot, start: u64, pages: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for page in 0..pages {
        let start = start + page * PAGE;
        let memtype = page_type(snapshot, start);
        match runs.last_mut() {
            Some(run) if run.memtype == memtype => run.end += PAGE,
            _ => runs.push(Run {
                start,
                end: start + PAGE,
                memtype,
            }),
        }
    }
    runs
}

/// Joins neighbours of one type: what is maximal anyway under contiguous masks.
fn joined(runs: impl Iterator<Item = Run>) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for run in runs {
        assert!(run.start < run.end);
        match all.last_mut() {
            Some(last) if last.memtype == run.memtype => {
                assert_eq!(last.end, run.start);
                last.end = run.end;
            }
            _ => all.push(run),
        }
    }
    all
}

/// Compares everything the map says about a window with the evaluator.
fn check_window(snapshot: &Snapshot, start: u64, pages: u64) {
    let map = MtrrMap::new(snapshot);
    let want = runs_by_page(snapshot, start, pages);
    let end = start + pages * PAGE;
    let got: Vec<Run> = map.runs_in(start..end).collect();
    assert_eq!(got, want, "{snapshot:?}");
    for run in &want {
        assert_eq!(map.at(run.start).memtype, run.memtype, "{snapshot:?}");
        assert_eq!(map.at(run.end - 1).memtype, run.memtype, "{snapshot:?}");
        assert_eq!(
            map.over(run.start..run.end),
            Uniformity::Uniform(run.memtype)
        );
    }
    if let [first, _, ..] = want[..] {
        assert_eq!(
            map.over(start..end),
            Uniformity::Mixed(first),
            "{snapshot:?}"
        );
    }
}

/// Every base and mask of a space of 16 pages, with both defaults and two types.
#[test]
fn every_pair_of_sixteen_pages() {
    // The low four address bits above the page of a wider space; the mask's upper bits are set,
    // so that the pair has no alias outside the window, or clear, so that all windows are alike.
    for upper in [0, 0xffff_0000] {
        for base in 0..16u64 {
            for mask in 0..16u64 {
                for (memtype, default) in [(WB, UC), (UC, WB), (4, 6), (6, 4)] {
                    let pair = (base << 12 | memtype, mask << 12 | upper | 0x800);
                    check_window(&machine(32, default, &[pair]), 0, 16);
                }
            }
        }
    }
}

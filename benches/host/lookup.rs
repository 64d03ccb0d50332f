//! One address, and the whole map: against an evaluator that goes through the registers as they
//! are, and against a linear scan of what it found.

use std::hint::black_box;

use mtrr_pat::lookup::{MtrrMap, Run};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::ranges::{FIXED_RANGES, PhysBits};
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use crate::side_by_side::Table;

pub fn rows(table: &mut Table) {
    for (name, snapshot) in [
        ("6 ranges, 36 bits", laptop()),
        ("10 ranges, 39 bits", small_box()),
    ] {
        let map = MtrrMap::new(&snapshot);
        let runs: Vec<Run> = map.runs().collect();
        let addrs = addresses(map.end());
        let ours = || sum(&addrs, |addr| black_box(&map).memtype_at(addr));
        table.row(&format!("4096 addresses, {name}: evaluator"), ours, || {
            sum(&addrs, |addr| obvious(black_box(&snapshot), addr))
        });
        table.row(
            &format!("4096 addresses, {name}: scan of {} runs", runs.len()),
            ours,
            || sum(&addrs, |addr| scanned(black_box(&runs), addr)),
        );
        table.row(
            &format!("decode and 1 address, {name}: evaluator"),
            || {
                weight(
                    0x1234_5000,
                    MtrrMap::new(black_box(&snapshot)).memtype_at(0x1234_5000),
                )
            },
            || weight(0x1234_5000, obvious(black_box(&snapshot), 0x1234_5000)),
        );
        let whole = || total(black_box(&map).runs());
        table.row(
            &format!("whole map, {name}: all edges, sorted"),
            whole,
            || total(by_edges(black_box(&snapshot)).into_iter()),
        );
        table.row(
            &format!("first 4 GiB, {name}: page by page"),
            || total(black_box(&map).runs_in(0..1 << 32)),
            || total(by_page(black_box(&snapshot), 1 << 32).into_iter()),
        );
    }
}

/// The type of an address, from the registers as they are.
fn obvious(snapshot: &Snapshot, addr: u64) -> MtrrType {
    if !snapshot.def_type.enabled() {
        return MemType::Uncachable.into();
    }
    if addr < 0x10_0000 && snapshot.fixed_in_force() {
        for (range, word) in FIXED_RANGES.iter().zip(&snapshot.fixed) {
            if addr < range.base + 8 * range.step {
                let byte = (addr - range.base) / range.step;
                return MtrrType::from_decoded(MemType::from_field((word >> (8 * byte)) as u8));
            }
        }
    }
    let mut found: Option<MtrrType> = None;
    for range in snapshot.variable_ranges() {
        if range.valid() && range.matches(addr, snapshot.phys_bits) {
            let this = MtrrType::from_decoded(range.memtype());
            found = Some(found.map_or(this, |other| both(other, this)));
        }
    }
    found.unwrap_or(MtrrType::from_decoded(snapshot.def_type.memtype()))
}

fn both(one: MtrrType, two: MtrrType) -> MtrrType {
    use MemType::{Uncachable, WriteBack, WriteThrough};
    match (one.defined(), two.defined()) {
        (Some(Uncachable), _) | (_, Some(Uncachable)) => Uncachable.into(),
        (Some(one), Some(two)) if one == two => one.into(),
        (Some(WriteBack), Some(WriteThrough)) | (Some(WriteThrough), Some(WriteBack)) => {
            WriteThrough.into()
        }
        _ => MtrrType::Undefined(Undefined::Mix),
    }
}

fn scanned(runs: &[Run], addr: u64) -> MtrrType {
    let found = runs.iter().find(|run| addr < run.end);
    found.map_or(MtrrType::Undefined(Undefined::BeyondWidth), |run| {
        run.memtype
    })
}

/// The whole map from the list of all edges: needs a heap, and masks without holes.
fn by_edges(snapshot: &Snapshot) -> Vec<Run> {
    let end = snapshot.phys_bits.end();
    let mut edges = vec![0];
    if snapshot.fixed_in_force() {
        edges.extend(
            FIXED_RANGES
                .iter()
                .flat_map(|range| (1..=8).map(|n| range.base + n * range.step)),
        );
    }
    for range in snapshot
        .variable_ranges()
        .iter()
        .filter(|range| range.valid())
    {
        let (base, size) = range
            .block(snapshot.phys_bits)
            .expect("a mask without holes");
        edges.extend([base, base + size]);
    }
    edges.sort_unstable();
    edges.dedup();
    edges.retain(|edge| *edge < end);
    let ends = edges.iter().skip(1).chain([&end]);
    join(
        edges
            .iter()
            .zip(ends)
            .map(|(start, end)| (*start, *end, obvious(snapshot, *start))),
    )
}

fn by_page(snapshot: &Snapshot, end: u64) -> Vec<Run> {
    join(
        (0..end)
            .step_by(0x1000)
            .map(|start| (start, start + 0x1000, obvious(snapshot, start))),
    )
}

fn join(pieces: impl Iterator<Item = (u64, u64, MtrrType)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (start, end, memtype) in pieces {
        match runs.last_mut() {
            Some(run) if run.memtype == memtype => run.end = end,
            _ => runs.push(Run {
                start,
                end,
                memtype,
            }),
        }
    }
    runs
}

/// Addresses as a kernel asks for them: some low, most in RAM and in the hole below 4 GiB.
fn addresses(end: u64) -> Vec<u64> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        state >> 12
    };
    (0..4096)
        .map(|i| match i % 8 {
            0 => next() & 0xf_ffff,
            1..=4 => next() & 0xffff_ffff,
            _ => next() % end,
        })
        .collect()
}

fn weight(addr: u64, memtype: MtrrType) -> u64 {
    let code = memtype
        .defined()
        .map_or(9, |memtype| u64::from(memtype.raw()));
    addr.wrapping_mul(2 * code + 1)
}

fn sum(addrs: &[u64], memtype: impl Fn(u64) -> MtrrType) -> u64 {
    addrs.iter().fold(0, |sum, addr| {
        sum.wrapping_add(weight(*addr, memtype(*addr)))
    })
}

fn total(runs: impl Iterator<Item = Run>) -> u64 {
    runs.fold(0, |sum, run| {
        sum.wrapping_add(weight(run.start ^ run.end << 7, run.memtype))
    })
}

fn machine(width: u8, default: MemType, pairs: &[(u64, u64, MemType)]) -> Snapshot {
    let bits = PhysBits::new(width).expect("a width");
    let mut snapshot = Snapshot::empty(bits);
    snapshot.cap = Some(MtrrCap::from_raw(0x500 | pairs.len() as u64));
    snapshot.def_type = MtrrDefType::from_raw(0xc00 | u64::from(default.raw()));
    snapshot.fixed = [0x0505_0505_0505_0505; 11];
    snapshot.fixed[..2].fill(0x0606_0606_0606_0606);
    snapshot.fixed[2] = 0;
    for (slot, &(base, size, memtype)) in snapshot.variable.iter_mut().zip(pairs) {
        *slot = VariableMtrr::from_block(base, size, memtype, bits).expect("an aligned block");
    }
    snapshot
}

/// A laptop of 8 GiB: WB ranges and a UC range over the top of them.
fn laptop() -> Snapshot {
    const WB: MemType = MemType::WriteBack;
    machine(
        36,
        MemType::Uncachable,
        &[
            (0, 0x8000_0000, WB),
            (0x8000_0000, 0x4000_0000, WB),
            (0xc000_0000, 0x1000_0000, WB),
            (0x1_0000_0000, 0x1_0000_0000, WB),
            (0x2_0000_0000, 0x4000_0000, WB),
            (0x2_3000_0000, 0x1000_0000, MemType::Uncachable),
        ],
    )
}

/// A small box of 16 GiB with all ten ranges used, all UC over a default of WB.
fn small_box() -> Snapshot {
    const UC: MemType = MemType::Uncachable;
    machine(
        39,
        MemType::WriteBack,
        &[
            (0x8000_0000, 0x8000_0000, UC),
            (0x7800_0000, 0x800_0000, UC),
            (0x20_0000_0000, 0x20_0000_0000, UC),
            (0x10_0000_0000, 0x10_0000_0000, UC),
            (0x8_0000_0000, 0x8_0000_0000, UC),
            (0x40_0000_0000, 0x40_0000_0000, UC),
            (0x4_8300_0000, 0x80_0000, UC),
            (0x4_8200_0000, 0x100_0000, UC),
            (0x4_8000_0000, 0x200_0000, UC),
            (0x4_7f80_0000, 0x80_0000, UC),
        ],
    )
}

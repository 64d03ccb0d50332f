//! Any bytes as a question about a layout, and as edits of a machine that holds anything. No
//! panic, no hang, and every plan is right by the evaluator of the tests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mtrr_pat::layout::{
    DefaultType, Edit, FixedRanges, Kind, Priority, Region, Scratch, Solution, Unlisted, Want,
    scratch_len,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

#[path = "../../analysis/layout/check.rs"]
#[allow(dead_code)]
mod check;
#[path = "../../analysis/layout/naive.rs"]
#[allow(dead_code)]
mod naive;
#[path = "../../analysis/oracle.rs"]
#[allow(dead_code)]
mod oracle;

use naive::{Naive, Problem};

/// Most registers that damage is weighed for: more only takes longer.
const MOST: usize = 12;

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// The next byte; 0 when the input is used up.
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.next()))
    }

    fn memtype(&mut self) -> MemType {
        MemType::ALL[usize::from(self.next()) % 5]
    }

    /// An address: some bits from a place on, so that boundaries meet often; sometimes unaligned.
    fn address(&mut self) -> u64 {
        let place = u32::from(self.next());
        let low = if place >= 0xf0 { 1 } else { 0 };
        (u64::from(self.next()) << (place % 45 + 12)) + low
    }

    fn region(&mut self) -> Region {
        let start = self.address();
        let end = start.wrapping_add(self.address());
        let how = self.next();
        Region {
            start,
            end,
            want: match how % 6 {
                5 => Want::DontCare,
                rank => Want::Type(MemType::ALL[usize::from(rank)]),
            },
            kind: if how & 0x40 == 0 {
                Kind::Ram
            } else {
                Kind::Mmio
            },
            priority: match how / 6 % 3 {
                0 => Priority::Normal,
                1 => Priority::Low,
                _ => Priority::High,
            },
        }
    }
}

fn question(bytes: &mut Bytes) {
    let (width, flags) = (32 + bytes.next() % 21, bytes.next());
    let mut problem = Problem::new(width, Vec::new());
    if flags & 1 != 0 {
        problem.fixed = FixedRanges::On;
    }
    if flags & 2 != 0 {
        problem.unlisted = Unlisted::DontCare;
    }
    problem.has_wc = flags & 4 == 0;
    if flags & 8 != 0 {
        let end = u64::from(bytes.next()) << 29 & !0x7f_ffff;
        problem.top_mem2 = end.min(problem.bits.end());
    }
    let default = match flags >> 4 {
        rank @ 0..5 => DefaultType::Given(MemType::ALL[usize::from(rank)]),
        _ => DefaultType::Free,
    };
    let registers = usize::from(bytes.next()) % (MOST + 1);
    for _ in 0..bytes.next() % 12 {
        problem.regions.push(bytes.region());
    }
    if flags & 0x10 != 0 {
        problem.regions.sort_by_key(|region| region.start);
    }
    let wanted = problem.wanted(registers).default_type(default);
    if let Ok(outcome) = wanted.plan() {
        check::check(&problem, &outcome, registers);
    }
    if let (Ok(fewest), DefaultType::Given(default)) = (wanted.fewest(), default) {
        let want = Naive::fewest(&problem, default);
        assert!(want == fewest.with_default(default) as u64 || want >= 1 << 30);
    }
    let mut scratch = vec![Scratch::EMPTY; scratch_len(registers, problem.bits)];
    if let Ok(outcome) = wanted.plan_least_damage(&mut scratch) {
        check::check(&problem, &outcome, registers);
    }
}

fn edits(bytes: &mut Bytes) {
    let (width, shape) = (32 + bytes.next() % 21, bytes.next());
    let mut boot = Snapshot::empty(PhysBits::new(width).expect("32 to 52"));
    boot.cap = Some(MtrrCap::from_raw(u64::from(shape % 14) | 0x500));
    boot.def_type = MtrrDefType::from_raw(u64::from(bytes.next()) << 8 | u64::from(bytes.next()));
    boot.syscfg = (shape & 0x80 != 0).then(|| SysCfg::from_raw(bytes.word()));
    boot.top_mem2 = bytes.word();
    boot.fixed = boot.fixed.map(|_| bytes.word());
    let bits = boot.phys_bits;
    for slot in boot.variable.iter_mut().take(usize::from(shape % 14)) {
        let (base, order) = (
            bytes.word(),
            12 + u32::from(bytes.next()) % (u32::from(width) - 11),
        );
        let base = base & (bits.end() - 1) & !((1 << order) - 1);
        let block = VariableMtrr::from_block(base, 1 << order, bytes.memtype(), bits);
        *slot = match bytes.next() {
            0 => VariableMtrr {
                base: bytes.word(),
                mask: bytes.word(),
            },
            1 => VariableMtrr::default(),
            _ => block.unwrap_or_default(),
        };
    }
    let Ok(mut edit) = Edit::of(&boot) else {
        return;
    };
    for _ in 0..bytes.next() % 6 {
        if bytes.next() & 1 == 0 {
            let _ = edit.set(bytes.region());
        } else {
            let start = bytes.address();
            let _ = edit.remove(
                start..start.saturating_add(bytes.address()),
                bytes.memtype(),
            );
        }
    }
    for outcome in [edit.plan(), edit.replan()] {
        if let Ok(Solution::Exact(plan)) = outcome {
            assert!(plan.registers().len() <= boot.variable_count());
            let target = edit.target(&plan).unwrap();
            for region in edit.regions() {
                if let Want::Type(memtype) = region.want {
                    for addr in [region.start, region.end - naive::PAGE] {
                        assert_eq!(oracle::page_type(&target, addr), memtype.into());
                    }
                }
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    if bytes.next() & 1 == 0 {
        question(&mut bytes);
    } else {
        edits(&mut bytes);
    }
});

//! Event lists of the PAT, of caching found off, of interrupts and of the flush policy.

use crate::common::lists::{
    CD, CR4, PAT, WINDOW_CLOSES, all, disables, enables, through_window, unflushed, window_opens,
};
use crate::common::one_cpu::{Case, another_map, mtrr_reads, reads};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE};
use mtrr_pat::delta::Changes;
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{CacheFlush, PatFlush};
use mtrr_pat::program::Need;
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::{At, CR0_KERNEL, Config, Fault, Op, What, firmware_map};

#[test]
fn pat_alone_leaves_caching_on() {
    let have = firmware_map();
    let mut want = have;
    // Slot 6 goes from UC- to WC: nothing stops being cacheable.
    want.pat = Some(Pat::from_raw(0x0001_0406_0007_0406));
    let pat = want.pat.unwrap().raw();
    let ran = Case::new(have, want).run();
    ran.assert_did(&all(&[
        &reads(&have),
        &[
            Op::ReadCr0(CR0_KERNEL),
            Op::Cli,
            Op::Wrmsr(PAT, pat),
            Op::Rdmsr(PAT, pat),
            Op::ReadCr4(CR4),
            Op::Cr4(CR4 & !CR4_PGE),
            Op::Cr4(CR4),
            Op::Sti,
        ],
    ]));
    assert_eq!((ran.need, ran.changes), (Need::Pat, Changes::PAT));
    assert_eq!(ran.machine.counters(0).cr0_writes, 0);
}

#[test]
fn pat_that_takes_cacheability_flushes_caches_after_the_tlb() {
    let have = firmware_map();
    let mut want = have;
    // Slot 1 goes from WT to WC.
    want.pat = Some(Pat::LINUX);
    let pat = Pat::LINUX.raw();
    let expected = |flush: &[Op]| {
        all(&[
            &reads(&have),
            &[
                Op::ReadCr0(CR0_KERNEL),
                Op::Cli,
                Op::Wrmsr(PAT, pat),
                Op::Rdmsr(PAT, pat),
                Op::ReadCr4(CR4),
                Op::Cr4(CR4 & !CR4_PGE),
                Op::Cr4(CR4),
            ],
            flush,
            &[Op::Sti],
        ])
    };
    Case::new(have, want)
        .run()
        .assert_did(&expected(&[Op::Wbinvd]));
    let mut promised = Case::new(have, want);
    promised.policy.pat_flush = PatFlush::Never;
    promised.run().assert_did(&expected(&[]));
}

#[test]
fn caching_found_off_is_turned_on_with_one_write() {
    let map = firmware_map();
    for bits in [CR0_CD | CR0_NW, CR0_CD] {
        let mut case = Case::new(map, map);
        case.cr0 = CR0_KERNEL | bits;
        let ran = case.run();
        ran.assert_did(&all(&[
            &reads(&map),
            &[
                Op::ReadCr0(CR0_KERNEL | bits),
                Op::ReadCr0(CR0_KERNEL | bits),
                Op::Cr0(CR0_KERNEL),
            ],
        ]));
        assert_eq!((ran.need, ran.changes), (Need::CachingOn, Changes::CACHING));
    }
}

#[test]
fn caching_found_off_goes_on_after_the_registers_are_right() {
    let (have, want) = (firmware_map(), another_map());
    let found = CR0_KERNEL | CR0_CD | CR0_NW;
    let mut case = Case::new(have, want);
    case.cr0 = found;
    let ran = case.run();
    assert!(ran.changes.contains(Changes::CACHING | Changes::FIXED));
    let cr0: Vec<Op> = ran
        .ops
        .iter()
        .copied()
        .filter(|op| matches!(op, Op::Cr0(_)))
        .collect();
    assert_eq!(cr0, [Op::Cr0(CD), Op::Cr0(CR0_KERNEL)]);
    let opens = all(&[
        &reads(&have),
        &[Op::ReadCr0(found)],
        &window_opens(found),
        &disables(have.def_type),
    ]);
    assert_eq!(ran.ops[..opens.len()], opens);
    let closes = all(&[&enables(want.def_type), &WINDOW_CLOSES]);
    assert_eq!(ran.ops[ran.ops.len() - closes.len()..], closes);

    let mut only_pat = have;
    only_pat.pat = want.pat;
    let mut case = Case::new(have, only_pat);
    case.cr0 = found;
    let ran = case.run();
    let pat = Pat::LINUX.raw();
    ran.assert_did(&all(&[
        &reads(&have),
        &[
            Op::ReadCr0(found),
            Op::Cli,
            Op::Wrmsr(PAT, pat),
            Op::Rdmsr(PAT, pat),
            Op::ReadCr4(CR4),
            Op::Cr4(CR4 & !CR4_PGE),
            Op::Cr4(CR4),
            Op::Wbinvd,
            Op::Sti,
            Op::ReadCr0(found),
            Op::Cr0(CR0_KERNEL),
        ],
    ]));
}

/// Intel family 6 after the errata, and those with them: Yonah, Merom, Merom-L, Penryn, Dunnington,
/// Nehalem (four), Westmere (two), Sandy Bridge.
const RECENT: u32 = 0x000c_06f2;
const ERRATA: [u32; 12] = [
    0x006e0, 0x006f0, 0x10660, 0x10670, 0x106d0, 0x106a0, 0x106e0, 0x106f0, 0x206e0, 0x20650,
    0x206c0, 0x206a0,
];

/// WBINVD in the window from DEF_TYPE `from` to `to`; everything else as the manuals say.
fn wbinvds(from: u64, to: u64, signature: u32, self_snoop: bool, flush: CacheFlush) -> usize {
    let (mut have, mut want) = (firmware_map(), firmware_map());
    have.def_type = MtrrDefType::from_raw(from);
    want.def_type = MtrrDefType::from_raw(to);
    let mut case = Case::new(have, want);
    case.config.signature = signature;
    case.config.self_snoop = self_snoop;
    case.policy.cache_flush = flush;
    let ran = case.run();
    let flushed = through_window(&have, &want, &[]);
    let count = ran.ops.iter().filter(|op| **op == Op::Wbinvd).count();
    ran.assert_did(&if count == 0 {
        unflushed(flushed)
    } else {
        flushed
    });
    count
}

/// MTRRs on, all memory write-back but for the ranges; the same, uncachable; and off.
const WB: u64 = 0xc06;
const UC: u64 = 0xc00;
const OFF: u64 = 0x400;

#[test]
fn caches_are_flushed_where_something_stops_being_cacheable() {
    use CacheFlush::{Always, SkipWithSelfSnoop, WhenNeeded};
    for (from, to, needed) in [
        (WB, UC, true),
        (WB, OFF, true),
        (UC, OFF, true),
        (UC, WB, false),
        // With E clear all was uncachable.
        (OFF, UC, false),
        (OFF, WB, false),
    ] {
        let expected = if needed { 2 } else { 0 };
        let count = |self_snoop, flush| wbinvds(from, to, RECENT, self_snoop, flush);
        assert_eq!(count(true, WhenNeeded), expected, "{from:#x} to {to:#x}");
        assert_eq!(count(true, SkipWithSelfSnoop), 0, "{from:#x} to {to:#x}");
        for self_snoop in [true, false] {
            assert_eq!(count(self_snoop, Always), 2, "{from:#x} to {to:#x}");
        }
        for flush in [WhenNeeded, SkipWithSelfSnoop] {
            assert_eq!(count(false, flush), 2, "no self-snoop, {flush:?}");
            for signature in ERRATA {
                let count = wbinvds(from, to, signature, true, flush);
                assert_eq!(count, 2, "{signature:#x}, {flush:?}");
            }
        }
    }
}

/// It came out of reset, and ran uncached since.
#[test]
fn a_cpu_fresh_from_reset_has_nothing_to_flush() {
    let (have, want) = (another_map(), firmware_map());
    let mut only_pat = have;
    only_pat.pat = want.pat;
    for want in [want, only_pat] {
        for (first, cr0, flushes) in [
            (true, CR0_KERNEL | CR0_CD | CR0_NW, false),
            // It was read since, and so may have cached; or reset was long ago.
            (false, CR0_KERNEL | CR0_CD | CR0_NW, true),
            (true, CR0_KERNEL, true),
        ] {
            let mut case = Case::new(have, want);
            (case.first, case.cr0) = (first, cr0);
            let ran = case.run();
            assert_eq!(ran.result, Ok(()));
            let flushed = ran.ops.contains(&Op::Wbinvd);
            assert_eq!(flushed, flushes, "{first} {cr0:#x} {:?}", ran.need);
        }
    }
}

#[test]
fn masked_interrupts_stay_masked() {
    let (have, want) = (firmware_map(), another_map());
    let mut only_pat = have;
    only_pat.pat = want.pat;
    for want in [want, only_pat, have] {
        let mut on = Case::new(have, want);
        on.interrupts = true;
        let mut off = Case::new(have, want);
        off.interrupts = false;
        let (mut on, off) = (on.run(), off.run());
        on.ops.retain(|op| !matches!(op, Op::Cli | Op::Sti));
        assert_eq!(off.ops, on.ops, "but for CLI and STI the same");
        assert!(!off.interrupts && on.interrupts);
        assert_eq!(off.machine.counters(0).cli + off.machine.counters(0).sti, 0);
    }
}

#[test]
fn control_registers_survive_every_path() {
    // `Case::run` compares CR0, CR3, CR4 and RFLAGS.IF with what they were.
    let (have, want) = (firmware_map(), another_map());
    let mut only_pat = have;
    only_pat.pat = want.pat;
    let mut only_unused = have;
    only_unused.variable[7].base = 4;
    for want in [have, only_pat, only_unused, want] {
        for cr4 in [0x20, 0xa0, 0x2_0020, 0x2_00a0, 0x37_06f8] {
            for cr3 in [0x1000, 0x7fff_f000] {
                for interrupts in [true, false] {
                    let mut case = Case::new(have, want);
                    (case.config.cr3, case.config.cr4) = (cr3, cr4);
                    case.interrupts = interrupts;
                    let ran = case.run();
                    assert_eq!(ran.result, Ok(()));
                    assert_eq!(mtrr_reads(&ran.machine.registers(0)), mtrr_reads(&want));
                }
            }
        }
    }
}

/// Without global pages nothing flushes the TLB on the way out: after the old map has been put back
/// it is flushed once more.
#[test]
fn without_global_pages_the_tlb_is_flushed_after_a_roll_back() {
    let mut config = Config::new(1, 1);
    config.cr4 &= !CR4_PGE;
    let enables = 1 + 3 + 34; // the probe's, E clear, all registers, and then E
    let found = (1..=enables).find(|&k| {
        let mut config = config.clone();
        config.faults = vec![Fault::new(0, At::Wrmsr(k), What::Gp)];
        config.boot = another_map();
        let ran = Case::on(config, firmware_map()).run();
        let Err(Error::WriteFault {
            msr: MsrAddr::MTRR_DEF_TYPE,
            left,
            value,
        }) = ran.result
        else {
            return false;
        };
        if !MtrrDefType::from_raw(value).enabled() || left != Left::RolledBack {
            return false;
        }
        let last = ran
            .ops
            .iter()
            .rposition(|op| matches!(op, Op::Wrmsr(..)))
            .unwrap();
        let after = &ran.ops[last..];
        let flush = after
            .iter()
            .position(|op| matches!(op, Op::Cr3(_) | Op::Cr4(_)));
        let caches_on = after.iter().position(|op| matches!(op, Op::Cr0(_)));
        assert!(flush < caches_on && flush.is_some(), "{after:?}");
        true
    });
    assert!(found.is_some(), "E is written last");
}

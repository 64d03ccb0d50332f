//! `oracle=types`: gives memory one memory type after the other, by MTRRs and page tables, and touches it. For an emulator that can
//! tell which type each access has (`tests/bochs.sh`): the log says what the crate's lookup expects for each.
//!
//! The crate writes the registers, the kernel reads them back, and the expectation comes from what it read. The memory is addresses
//! where nothing is, and option ROM space for the fixed ranges: for an emulator, not for a PC.

use crate::caching;
use crate::layouts::{self, Layout};
use crate::regs::RegFile;
use crate::rounds::Verdict;
use crate::{println, window};
use core::arch::asm;
use mtrr_pat::combine::{Effective, Standing};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::pat::{Pat, Slot};
use mtrr_pat::snapshot::Snapshot;

/// A PAT with all six types.
const SIX: Pat = Pat::from_types([
    PatType::WriteBack,
    PatType::WriteThrough,
    PatType::UncachedMinus,
    PatType::Uncachable,
    PatType::WriteCombining,
    PatType::WriteProtected,
    PatType::Uncachable,
    PatType::Uncachable,
]);
const _: () = {
    let mut types = PatType::ALL.as_slice();
    while let [memtype, rest @ ..] = types {
        assert!(SIX.find(*memtype).is_some());
        types = rest;
    }
};

impl Verdict {
    /// Every MTRR type under every PAT type, then the overlap layouts, all under WB; then the firmware's map again.
    pub fn oracle(&mut self) {
        let Some(before) = self.expect("reading the target", caching::target()) else {
            return;
        };
        let base = Snapshot {
            pat: Some(SIX),
            ..before
        };
        let mut touches = 0;
        for memtype in MemType::ALL {
            let layout = Layout::plain(memtype);
            if let Some(map) = self.program(&base, &layout) {
                let places = PatType::ALL.into_iter().zip(layout.touches(&base));
                for (pat, phys) in places {
                    touch(&mut touches, "pair", layout.name, &map, phys, pat);
                }
            }
        }
        for layout in layouts::all() {
            if let Some(map) = self.program(&base, layout) {
                for phys in layout.touches(&base) {
                    touch(
                        &mut touches,
                        "overlap",
                        layout.name,
                        &map,
                        phys,
                        PatType::WriteBack,
                    );
                }
            }
        }
        self.expect("the firmware's map again", caching::change_to(&before));
        println!(
            "oracle: {touches} touches, {} layouts",
            layouts::all().len()
        );
    }

    /// Brings a layout to all CPUs, and reads it back.
    #[inline(never)] // several KiB of stack
    fn program(&mut self, base: &Snapshot, layout: &Layout) -> Option<MtrrMap> {
        let Some(target) = layout.on(base) else {
            self.failed(format_args!("{}: too few variable ranges", layout.name));
            return None;
        };
        let _ = self.expect(layout.name, caching::change_to(&target))?;
        Some(MtrrMap::new(&RegFile::read().snapshot(&target)))
    }
}

/// Reads and writes one word between two `xchg bx, bx`, which does nothing but stop an emulator that looks for it.
fn touch(count: &mut usize, group: &str, name: &str, map: &MtrrMap, phys: u64, pat: PatType) {
    let Some(slot) = SIX.find(pat) else { return };
    let place = window::map_small(*count % window::PLACES, phys, slot);
    expect_line(
        *count,
        group,
        name,
        map.memtype_at(phys),
        pat,
        (place, phys),
        slot,
    );
    // SAFETY: mapped above; nothing is there, or a ROM.
    unsafe {
        asm!("xchg bx, bx", "mov {word}, [{place}]", "mov [{place}], {word}", "xchg bx, bx",
            word = out(reg) _, place = in(reg) place, options(nostack, preserves_flags))
    };
    *count += 1;
}

fn expect_line(
    n: usize,
    group: &str,
    name: &str,
    mtrr: MtrrType,
    pat: PatType,
    (linear, phys): (*mut u64, u64),
    slot: Slot,
) {
    let expected = Effective::combine(mtrr, pat, caching::rule());
    let standing = match expected.standing {
        Standing::Defined => "defined",
        Standing::NotRecommended => "not-recommended",
        Standing::Undefined => "undefined",
    };
    let defined = mtrr.defined().map_or("none", MemType::short);
    println!(
        "oracle touch={n} group={group} linear={:#x} phys={phys:#x} mtrr={defined} pat={} slot={} expect={} standing={standing} layout={name}",
        linear as u64,
        pat.short(),
        slot.index(),
        expected.page.short(),
    );
}

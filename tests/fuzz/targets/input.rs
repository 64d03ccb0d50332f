//! Bytes of a fuzzer as register files.

use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{Iorr, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::routing::Routing;
use mtrr_pat::snapshot::Snapshot;

/// The input of a run, word by word.
pub struct Words<'a>(pub &'a [u8]);

impl Words<'_> {
    /// The next word; 0 when the input is used up.
    pub fn next(&mut self) -> u64 {
        let (head, tail) = self.0.split_at(self.0.len().min(8));
        self.0 = tail;
        let mut word = [0; 8];
        word[..head.len()].copy_from_slice(head);
        u64::from_le_bytes(word)
    }
}

/// Any words as the registers of one CPU that only firmware sets, any of them unknown.
pub fn routing(words: &mut Words) -> Routing {
    let shape = words.next();
    let mut word = |unknown: u64| {
        let word = words.next();
        (shape & unknown == 0).then_some(word)
    };
    let mut iorr = |unknown| word(unknown).zip(word(unknown));
    let iorr = [iorr(1), iorr(2)].map(|pair| pair.map(|(base, mask)| Iorr { base, mask }));
    Routing {
        iorr,
        top_mem: word(4),
        tme_activate: word(8),
    }
}

/// Any words as the registers of one CPU.
pub fn register_file(words: &mut Words) -> Snapshot {
    let shape = words.next();
    let width = 32 + (shape % 21) as u8;
    let mut snapshot = Snapshot::empty(PhysBits::new(width).expect("32 to 52"));
    snapshot.cap = (shape & 0x100 == 0).then(|| MtrrCap::from_raw(shape >> 16));
    snapshot.syscfg = (shape & 0x200 != 0).then(|| SysCfg::from_raw(words.next()));
    snapshot.pat = (shape & 0x400 != 0).then(|| Pat::from_raw(words.next()));
    snapshot.def_type = MtrrDefType::from_raw(words.next());
    snapshot.top_mem2 = words.next();
    for word in &mut snapshot.fixed {
        *word = words.next();
    }
    for slot in &mut snapshot.variable {
        *slot = VariableMtrr {
            base: words.next(),
            mask: words.next(),
        };
    }
    snapshot
}

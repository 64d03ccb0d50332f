//! Whether the map of one CPU can be given to another that is built otherwise.
//!
//! Hybrid parts have been seen with different counts of pairs; nothing promises one width either.

use super::Snapshot;
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MtrrCap, VariableMtrr};

impl Snapshot {
    /// Whether a CPU with this MTRRCAP can hold the map: it has FIX and WC as the target's machine has,
    /// and a pair for each that is in use. Bits that mean nothing for the map, and pairs that are not
    /// in use, may differ, as they do on hybrid parts. The address width is another question:
    /// [`Snapshot::fits_width`].
    #[must_use]
    pub fn fits(&self, cap: MtrrCap) -> bool {
        let Some(wanted) = self.cap else {
            return true;
        };
        let features = MtrrCap::FIX.union(MtrrCap::WC);
        let pairs = usize::from(cap.vcnt());
        let mut beyond = self.variable_ranges().iter().skip(pairs);
        wanted.intersection(features) == cap.intersection(features)
            && pairs <= MAX_VARIABLE
            && beyond.all(|pair| !pair.valid())
    }

    /// Whether the pairs in use mean the same, word for word, on a CPU that decodes this many bits.
    #[must_use]
    pub fn fits_width(&self, bits: PhysBits) -> bool {
        let mut in_use = self.variable_ranges().iter().filter(|range| range.valid());
        in_use.all(|range| range.at_width(self.phys_bits, bits) == *range)
    }

    /// Rewrites the pairs for a CPU that decodes this many address bits. Every address both can name
    /// keeps its type; of what a narrower one cannot name nothing is left, and what only a wider one
    /// can name gets the default type.
    pub fn set_width(&mut self, bits: PhysBits) {
        let from = self.phys_bits;
        for range in &mut self.variable {
            *range = range.at_width(from, bits);
        }
        self.phys_bits = bits;
    }
}

impl VariableMtrr {
    /// The pair as a CPU needs it that decodes `to` address bits where this one is for `from`.
    const fn at_width(self, from: PhysBits, to: PhysBits) -> Self {
        let Self { base, mask } = self;
        let (old, new) = (from.page_mask(), to.page_mask());
        if to.get() >= from.get() {
            // The bits above are compared too: they are 0 in every address it was for.
            let more = if self.valid() { new & !old } else { 0 };
            return Self {
                base: base & !more,
                mask: mask | more,
            };
        }
        let lost = old & !new;
        let above = base & mask & lost != 0;
        Self {
            base: base & !lost,
            mask: if above {
                mask & !(lost | Self::V)
            } else {
                mask & !lost
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::MtrrMap;
    use crate::memtype::MemType;
    use crate::regs::MtrrDefType;
    use proptest::prelude::*;

    fn bits(bits: u8) -> PhysBits {
        PhysBits::new(bits).unwrap()
    }

    fn machine(cap: u64) -> Snapshot {
        let mut map = Snapshot::empty(bits(39));
        map.cap = Some(MtrrCap::from_raw(cap));
        map.def_type = MtrrDefType::from_raw(0xc00);
        map.fixed = [0x0606_0606_0606_0606; 11];
        for (n, pair) in map.variable.iter_mut().take(3).enumerate() {
            let block = (n as u64) << 30;
            *pair = VariableMtrr::from_block(block, 1 << 30, MemType::WriteBack, bits(39)).unwrap();
        }
        map
    }

    #[test]
    fn pairs_that_are_not_there_must_not_be_in_use() {
        let mut map = machine(0xd0a);
        for vcnt in 0..=40 {
            let cap = MtrrCap::from_raw(0xd00 | vcnt);
            assert_eq!(map.fits(cap), vcnt >= 3, "{vcnt}");
        }
        map.variable[9] = map.variable[0];
        assert!(!map.fits(MtrrCap::from_raw(0xd09)) && map.fits(MtrrCap::from_raw(0xd0a)));
        // One beyond VCNT is no pair.
        map.cap = Some(MtrrCap::from_raw(0xd08));
        assert!(map.fits(MtrrCap::from_raw(0xd03)));
        assert!(!map.fits(MtrrCap::from_raw(0xd02)));
        assert!(
            !map.fits(MtrrCap::from_raw(0xd29)),
            "more than have addresses"
        );
    }

    #[test]
    fn fixed_ranges_and_write_combining_must_be_the_same_and_nothing_else() {
        let map = machine(0xd0a);
        for bit in 8..64 {
            let cap = MtrrCap::from_raw(0xd0a ^ 1 << bit);
            assert_eq!(map.fits(cap), !matches!(bit, 8 | 10), "bit {bit}");
        }
        assert!(Snapshot::empty(bits(39)).fits(MtrrCap::from_raw(0)));
    }

    #[test]
    fn masks_follow_the_width() {
        let map = machine(0xd0a);
        assert!(map.fits_width(bits(39)));
        assert!(!map.fits_width(bits(36)) && !map.fits_width(bits(46)));
        let mut narrow = map;
        narrow.set_width(bits(36));
        assert_eq!(narrow.variable[1].mask, 0xf_c000_0800);
        assert_eq!(narrow.first_invalid(), None);
        let mut wide = map;
        wide.set_width(bits(46));
        assert_eq!(wide.variable[1].mask, 0x3fff_c000_0800);
        narrow.set_width(bits(39));
        wide.set_width(bits(39));
        assert_eq!((narrow, wide), (map, map));
        // What lies above is gone.
        let mut high = map;
        let block = VariableMtrr::from_block(1 << 38, 1 << 30, MemType::WriteBack, bits(39));
        high.variable[0] = block.unwrap();
        high.set_width(bits(36));
        assert!(!high.variable[0].valid());
        assert_eq!(high.first_invalid(), None);
    }

    proptest! {
        /// Masks with holes, aliases and junk in pairs that are off included.
        #[test]
        fn every_address_both_can_name_keeps_its_type(
            from in 32u8..=52,
            to in 32u8..=52,
            words in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0usize..5), 10),
            default in 0usize..5,
            addresses in prop::collection::vec(any::<u64>(), 64),
        ) {
            let mut map = machine(0xd0a);
            map.phys_bits = bits(from);
            map.def_type = MtrrDefType::from_raw(0x800 | u64::from(MemType::ALL[default].raw()));
            let page_mask = bits(from).page_mask();
            for (pair, (base, mask, fewer, kind)) in map.variable.iter_mut().zip(&words) {
                pair.base = base & page_mask | u64::from(MemType::ALL[*kind].raw());
                pair.mask = mask & fewer & page_mask | mask << 11 & VariableMtrr::V;
            }
            let mut given = map;
            given.set_width(bits(to));
            prop_assert_eq!(given.first_invalid(), None);
            prop_assert_eq!(map.fits_width(bits(to)), {
                let pairs = map.variable.iter().zip(&given.variable).take(10);
                pairs.into_iter().all(|(had, has)| had == has || !had.valid())
            });
            let both = bits(from.min(to)).end() - 1;
            let (had, has) = (MtrrMap::new(&map), MtrrMap::new(&given));
            let bases = words.iter().map(|(base, ..)| *base);
            for address in addresses.iter().copied().chain(bases) {
                prop_assert_eq!(had.memtype_at(address & both), has.memtype_at(address & both));
            }
            // Nothing repeats above what the narrower one could name.
            let above = (both + 1..bits(to).end()).step_by((both + 1) as usize).take(3);
            for address in above.filter(|_| to > from) {
                let expected = MemType::ALL[default];
                prop_assert_eq!(has.memtype_at(address).defined(), Some(expected));
            }
        }
    }
}

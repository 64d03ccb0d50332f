//! The physical address width: found, derived or assumed, and masks worked out again from the
//! sizes /proc/mtrr prints.

use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::VariableMtrr;

use super::digits;
use super::dump::Dump;
use super::regs::Variable;

/// The width taken when nothing in a dump needs more.
const USUAL: u8 = 36;

/// Where the width is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsFrom {
    /// Stated in the input.
    Log,
    /// The highest bit of the masks.
    Masks,
    /// `--phys-bits`.
    Flag,
    /// CPUID of this machine.
    Cpuid,
    /// Nothing says it.
    Assumed,
}

impl BitsFrom {
    /// The word in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Masks => "masks",
            Self::Flag => "flag",
            Self::Cpuid => "cpuid",
            Self::Assumed => "assumed",
        }
    }
}

/// Finds the width of `dump`; what had to be assumed goes to `notes`.
pub fn find(dump: &Dump, flag: Option<PhysBits>, notes: &mut Vec<String>) -> (PhysBits, BitsFrom) {
    note_odd_sizes(dump, notes);
    if let Some(bits) = flag {
        return (bits, BitsFrom::Flag);
    }
    if let Some((bits, words)) = &dump.stated_bits {
        if let Some(bits) = PhysBits::new(*bits) {
            let from = if dump.bits_from_cpuid {
                BitsFrom::Cpuid
            } else {
                BitsFrom::Log
            };
            return (bits, from);
        }
        notes.push(format!(
            "the input says \"{words}\" {bits}, which is not between 32 and 52"
        ));
    }
    if let Some(bits) = from_list(dump).or_else(|| from_masks(dump, notes)) {
        return (bits, BitsFrom::Masks);
    }
    let needed = needed_bits(dump);
    let bits = PhysBits::new(needed.clamp(USUAL, 52)).unwrap_or(PhysBits::MAX);
    // Without a range the width is of no interest.
    if entries(dump).next().is_none() && dump.kernel_map.entries.is_empty() {
        return (bits, BitsFrom::Assumed);
    }
    notes.push(format!(
        "assumed: {} physical address bits (the dump does not say, its ranges need {needed}); \
         --phys-bits sets it",
        bits.get()
    ));
    (bits, BitsFrom::Assumed)
}

/// Every variable range of every CPU.
fn entries(dump: &Dump) -> impl Iterator<Item = &Variable> {
    dump.cpus.values().flat_map(|regs| regs.variable.values())
}

/// The width the kernel itself took: a mask of zero is the whole space, whose size it printed.
fn from_list(dump: &Dump) -> Option<PhysBits> {
    let table = dump.cpus.values().next()?;
    let whole = |(index, listed): (&u8, &super::dump::Listed)| {
        let entry = table.variable.get(index)?;
        let Variable::Words { base, mask } = entry else {
            return None;
        };
        let same = (*base)? & !0xfff == listed.base && (*mask)? >> 12 == 0;
        (same && listed.size.is_power_of_two()).then(|| listed.size.trailing_zeros() as u8)
    };
    dump.listed.iter().find_map(whole).and_then(PhysBits::new)
}

/// One more than the highest address bit of any mask in use: firmware fills masks up to the width.
/// Where the dump itself shows that it did not, the digits tell how wide the processor is.
fn from_masks(dump: &Dump, notes: &mut Vec<String>) -> Option<PhysBits> {
    let reach = entries(dump).filter_map(reach).max();
    let reach = reach.and_then(|bits| u8::try_from(bits).ok());
    // Firmware that thinks of fewer than 32 bits says nothing of the width.
    let reach = reach.filter(|bits| *bits >= PhysBits::MIN.get());
    let needed = needed_bits(dump);
    let Some(reach) = reach else {
        return digits::widest(dump, needed).and_then(PhysBits::new);
    };
    let short = reach < needed || dump.incorrect_mask;
    let least = needed.max(reach.saturating_add(u8::from(dump.incorrect_mask)));
    if let (true, Some(bits)) = (short, digits::widest(dump, least)) {
        notes.push(format!(
            "{bits} address bits: no mask reaches above {reach}, but {}",
            if dump.incorrect_mask {
                "the kernel calls that incorrect for this processor"
            } else {
                "there is memory above"
            }
        ));
        return PhysBits::new(bits);
    }
    PhysBits::new(reach.max(needed))
}

/// One more than the highest address bit of the mask of `entry`, if it is in use and shows one.
fn reach(entry: &Variable) -> Option<u32> {
    let mask = match entry {
        Variable::Off => return None,
        Variable::Words { mask, .. } => (*mask)?,
        Variable::Range { size, .. } => odd_mask(*size)? | VariableMtrr::V,
    };
    (mask & VariableMtrr::V != 0 && mask >> 12 != 0).then(|| 64 - mask.leading_zeros())
}

/// Bits needed for the last byte of every range and of RAM.
fn needed_bits(dump: &Dump) -> u8 {
    let ranges = entries(dump).map(|entry| match entry {
        Variable::Range { base, size, .. } => {
            // A size with too many bits is that of a smaller range.
            let size = odd_mask(*size).map_or(*size, |mask| mask & mask.wrapping_neg());
            base.saturating_add(size) - 1
        }
        Variable::Words { base, mask } if mask.is_some_and(|mask| mask & VariableMtrr::V != 0) => {
            base.unwrap_or(0)
        }
        Variable::Words { .. } => 0,
        Variable::Off => 0,
    });
    let ram = dump.ram.iter().map(|range| range.1 - 1).chain(dump.ram_end);
    let listed = dump.kernel_map.entries.values().map(|entry| entry.end - 1);
    let last = ranges.chain(ram).chain(listed).max().unwrap_or(0);
    (64 - last.leading_zeros()) as u8
}

/// The mask behind a printed size that is no power of two: the program that printed it took the
/// processor for wider than it is, so that size is a power of two less the mask.
pub fn odd_mask(size: u64) -> Option<u64> {
    if size.is_power_of_two() || size == 0 {
        return None;
    }
    let above = size.checked_next_power_of_two()?;
    let mask = above - size;
    let lowest = mask & mask.wrapping_neg();
    // Contiguous, and of a width processors have.
    let bits = 64 - mask.leading_zeros();
    ((mask + lowest).is_power_of_two() && (32..=52).contains(&bits) && lowest >= 0x1000)
        .then_some(mask)
}

/// The mask of a range of `size` bytes, without V.
pub fn mask_for(size: u64, bits: PhysBits) -> u64 {
    if let Some(mask) = odd_mask(size) {
        return mask;
    }
    if size.is_power_of_two() {
        return bits.page_mask() & !(size - 1);
    }
    // A mask with holes: what the printing program subtracted from its own idea of the width.
    let above = size
        .checked_next_power_of_two()
        .unwrap_or(1 << 63)
        .max(bits.end());
    above.wrapping_sub(size) & PhysBits::MAX.page_mask()
}

/// Explains sizes such as "983552MB".
fn note_odd_sizes(dump: &Dump, notes: &mut Vec<String>) {
    for entry in entries(dump) {
        let Variable::Range { base, size, .. } = entry else {
            continue;
        };
        if let Some(mask) = odd_mask(*size) {
            let real = mask & mask.wrapping_neg();
            notes.push(format!(
                "the size printed for {base:#x}, {} MB, is no power of two: it was worked out with \
                 {} address bits, but the mask {mask:#x} is made for {}; the range is {} MB",
                size >> 20,
                64 - size.leading_zeros(),
                64 - mask.leading_zeros(),
                real >> 20,
            ));
        } else if !size.is_power_of_two() {
            notes.push(format!(
                "the size printed for {base:#x}, {size:#x}, is no power of two: the mask has holes"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_worked_out_with_too_many_bits_gives_the_mask_back() {
        // 512 MiB on a 36-bit processor, printed by a kernel that took it for 40 bits.
        let printed = 983_552 << 20;
        assert_eq!(odd_mask(printed), Some(0xf_e000_0000));
        let bits = PhysBits::new(36).unwrap();
        assert_eq!(mask_for(printed, bits), 0xf_e000_0000);
        assert_eq!(mask_for(512 << 20, bits), 0xf_e000_0000);
    }

    #[test]
    fn every_narrow_mask_is_recovered() {
        for real in 32..48u32 {
            for taken in real + 1..52 {
                for shift in 12..real - 1 {
                    let mask = (1u64 << real) - (1 << shift);
                    assert_eq!(
                        odd_mask((1 << taken) - mask),
                        Some(mask),
                        "{real} {taken} {shift}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_whole_space_is_mask_zero() {
        let bits = PhysBits::new(36).unwrap();
        assert_eq!(mask_for(1 << 36, bits), 0);
    }
}

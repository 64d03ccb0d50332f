//! How many digits kernels print a base and a mask with, and which widths a number of digits
//! leaves open.

use mtrr_pat::ranges::PhysBits;

use super::dump::Dump;

/// A kernel that prints a table of variable ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printer {
    /// Linux before 6.5: eight digits, and one for every four bits above 32, at least one.
    OldLinux,
    /// Linux since 6.5: three digits more for most widths.
    NewLinux,
    /// Xen: a digit for every four bits.
    Xen,
}

/// What a table tells of the program that printed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits {
    /// Most digits of a mask.
    pub mask: u8,
    /// The digits above nine are small letters.
    pub small: bool,
}

impl Digits {
    /// Takes the digits of one mask in.
    pub fn see(&mut self, mask: &str) {
        let count = u8::try_from(mask.len()).unwrap_or(u8::MAX);
        self.mask = self.mask.max(count);
        self.small |= mask.contains(|c: char| matches!(c, 'a'..='f'));
    }
}

impl Printer {
    /// Digits of a base or mask on a processor with `bits` address bits.
    pub fn digits(self, bits: u8) -> u8 {
        match self {
            Self::OldLinux => 8 + bits.saturating_sub(32).div_ceil(4).max(1),
            Self::NewLinux => 8 + (bits - 20).div_ceil(4),
            Self::Xen => 3 + (bits - 12).div_ceil(4),
        }
    }

    /// The printers a table can be from.
    fn possible(dump: &Dump) -> &'static [Self] {
        if dump.digits.small {
            &[Self::Xen]
        } else if dump.new_linux {
            &[Self::NewLinux]
        } else {
            &[Self::OldLinux, Self::NewLinux, Self::Xen]
        }
    }
}

/// The widest processor above `least` bits for which the table of `dump` has as many digits as it
/// has; of several printers the one that needs the fewest bits.
pub fn widest(dump: &Dump, least: u8) -> Option<u8> {
    let widths = |printer: &Printer| {
        let printer = *printer;
        (PhysBits::MIN.get()..=PhysBits::MAX.get())
            .rfind(move |bits| *bits >= least && printer.digits(*bits) == dump.digits.mask)
    };
    Printer::possible(dump).iter().filter_map(widths).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_as_the_kernels_print_them() {
        for (bits, old, new, xen) in [
            (32, 9, 11, 8),
            (36, 9, 12, 9),
            (39, 10, 13, 10),
            (40, 10, 13, 10),
            (42, 11, 14, 11),
            (46, 12, 15, 12),
            (48, 12, 15, 12),
            (52, 13, 16, 13),
        ] {
            assert_eq!(Printer::OldLinux.digits(bits), old, "{bits}");
            assert_eq!(Printer::NewLinux.digits(bits), new, "{bits}");
            assert_eq!(Printer::Xen.digits(bits), xen, "{bits}");
        }
    }

    #[test]
    fn the_program_that_printed_it_decides_between_widths() {
        let dump = |mask, small, new_linux| Dump {
            digits: Digits { mask, small },
            new_linux,
            ..Dump::default()
        };
        assert_eq!(widest(&dump(9, false, false), 33), Some(36));
        assert_eq!(widest(&dump(12, false, false), 34), Some(36));
        assert_eq!(widest(&dump(12, false, false), 40), Some(48));
        assert_eq!(widest(&dump(12, true, false), 34), Some(48));
        assert_eq!(widest(&dump(15, false, true), 40), Some(48));
        assert_eq!(widest(&dump(0, false, false), 33), None);
    }
}

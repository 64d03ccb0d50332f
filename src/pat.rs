//! The page attribute table: layouts, slot search, page-table bits.
//!
//! Owns the eight slots; refuses to know which CPU holds them.

use core::fmt;

use crate::memtype::{PatType, ReservedType};

/// The IA32_PAT word: eight bytes, one type each, slot 0 in the low byte.
///
/// Source: Intel SDM 3A, "IA32_PAT MSR"; AMD APM 2, "PAT Register".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "IA32_PAT")]
#[repr(transparent)]
pub struct Pat(u64);

impl Pat {
    /// What reset leaves: WB WT UC- UC, twice.
    pub const POWER_ON: Self = Self(0x0007_0406_0007_0406);
    /// The layout Linux programs: WB WC UC- UC WB WP UC- WT.
    pub const LINUX: Self = Self(0x0407_0506_0007_0106);
    /// Low half as reset leaves it, WP and WC in slots 4 and 5: page tables made by a boot loader
    /// that knows only PCD and PWT keep their meaning.
    pub const LOW_HALF_UNTOUCHED: Self = Self(0x0007_0105_0007_0406);

    /// Wraps the word as read, reserved types included.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The word as read.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The type in slot `index & 7`.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn slot(self, index: u8) -> Result<PatType, ReservedType> {
        PatType::from_field((self.0 >> ((index & 7) * 8)) as u8)
    }
}

impl fmt::Debug for Pat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pat({:#018x})", self.0)
    }
}

impl fmt::Display for Pat {
    /// Writes the eight short names, slot 0 first; `?` for a reserved type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..8 {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(self.slot(index).map_or("?", PatType::short))?;
        }
        Ok(())
    }
}

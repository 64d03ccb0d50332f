//! What to use when the wanted type is not in the PAT.

use core::fmt;

use super::{Pat, Slot};
use crate::memtype::PatType;

/// The slot to use for a wanted type, and the type it really holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatChoice {
    /// What was asked for.
    pub wanted: PatType,
    /// What the slot holds: `wanted`, or the fallback.
    pub granted: PatType,
    /// The lowest slot that holds `granted`.
    pub slot: Slot,
}

impl PatChoice {
    /// Whether the slot holds what was asked for, and not a fallback.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.wanted.raw() == self.granted.raw()
    }
}

impl fmt::Display for PatChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.slot, self.granted)?;
        if !self.is_exact() {
            write!(f, " in place of {}, which the PAT lacks", self.wanted)?;
        }
        Ok(())
    }
}

/// The PAT has neither the wanted type nor a fallback for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPatSlot {
    /// What was asked for.
    pub wanted: PatType,
}

impl fmt::Display for NoPatSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no slot of the PAT holds {} or a type that may stand in for it",
            self.wanted
        )
    }
}

impl core::error::Error for NoPatSlot {}

/// What may stand in for a type, best first, the type itself included.
///
/// Whatever the MTRRs say of the page, a stand-in caches no more than the type would have
/// (neither reads nor writes), and combines writes only where the type would have. So UC- may
/// stand in for WC, but not for UC, WT or WP: under a WC range it would combine their writes. WT
/// and WP differ in what a write does to the caches, so neither stands in for the other.
const fn stand_ins(wanted: PatType) -> &'static [PatType] {
    use PatType::{
        Uncachable, UncachedMinus, WriteBack, WriteCombining, WriteProtected, WriteThrough,
    };
    match wanted {
        Uncachable => &[Uncachable],
        UncachedMinus => &[UncachedMinus, Uncachable],
        WriteCombining => &[WriteCombining, UncachedMinus, Uncachable],
        WriteThrough => &[WriteThrough, Uncachable],
        WriteProtected => &[WriteProtected, Uncachable],
        WriteBack => &[WriteBack, WriteThrough, Uncachable],
    }
}

impl Pat {
    /// The slot for `wanted` in this PAT as it is, or for the best type that may stand in.
    ///
    /// A stand-in never caches more than what was asked for, under any MTRR type: WC becomes UC-
    /// or UC; WT, WP and UC- become UC; WB becomes WT or UC. The answer says which; a caller
    /// that needs the very type asks [`PatChoice::is_exact`], or uses [`Pat::find`].
    ///
    /// # Errors
    /// [`NoPatSlot`] when no slot may be used, in particular for UC when none holds UC.
    pub const fn choose(self, wanted: PatType) -> Result<PatChoice, NoPatSlot> {
        let mut types = stand_ins(wanted);
        while let [granted, rest @ ..] = types {
            if let Some(slot) = self.find(*granted) {
                return Ok(PatChoice {
                    wanted,
                    granted: *granted,
                    slot,
                });
            }
            types = rest;
        }
        Err(NoPatSlot { wanted })
    }
}

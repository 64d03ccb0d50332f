//! The first word of an outcome: what a summary of many CPUs wants to know, one cache line to fetch.

use super::{Outcome, Path};
use crate::delta::Changes;

/// The number of no rendezvous.
pub(crate) const NO_RENDEZVOUS: u32 = 0;

/// Path in bits 7:0, changes in 15:8, error kind in 23:16, what is left in 31:24, and above them the
/// number of the rendezvous in which the CPU was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gist(u64);

impl Gist {
    pub(super) const fn of(outcome: &Outcome, kind: u8, left: u8, rendezvous: u32) -> Self {
        Self(
            outcome.path as u64
                | (outcome.changes.bits() as u64) << 8
                | (kind as u64) << 16
                | (left as u64) << 24
                | (rendezvous as u64) << 32,
        )
    }

    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// `None`: there is no outcome yet.
    pub(crate) fn path(self) -> Option<Path> {
        Path::from_byte(self.0 as u8)
    }

    pub(crate) const fn changes(self) -> Changes {
        Changes::from_bits_retain((self.0 >> 8) as u8)
    }

    /// 0: no error.
    pub(super) const fn error_kind(self) -> u8 {
        (self.0 >> 16) as u8
    }

    pub(crate) const fn is_without_error(self) -> bool {
        self.error_kind() == 0
    }

    pub(super) const fn left(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The rendezvous in which the CPU was compared.
    pub(crate) const fn rendezvous(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_bits_of_its_own() {
        for path in Path::ALL {
            for changes in [Changes::empty(), Changes::PAT, Changes::all()] {
                let outcome = Outcome {
                    path,
                    changes,
                    error: None,
                    ticks: 0,
                };
                let gist = Gist::from_word(Gist::of(&outcome, 12, 3, u32::MAX).word());
                assert_eq!((gist.path(), gist.changes()), (Some(path), changes));
                assert_eq!((gist.error_kind(), gist.left()), (12, 3));
                assert_eq!(gist.rendezvous(), u32::MAX);
                let gist = Gist::of(&outcome, 0, 0, NO_RENDEZVOUS);
                assert_eq!((gist.rendezvous(), gist.error_kind()), (0, 0));
            }
        }
        assert_eq!(Gist::from_word(0).path(), None);
    }
}

//! The scratch of the least-damage question: how much it takes, and the choices kept in it.

use super::error::LayoutError;
use super::loss::Lost;
use super::states::TYPES;
use super::trie::{PAGE_ORDER, level};
use crate::ranges::PhysBits;
use crate::regs::MAX_VARIABLE;

/// A word of scratch for [`Wanted::plan_least_damage`]: plain memory, no meaning between calls.
///
/// [`Wanted::plan_least_damage`]: super::Wanted::plan_least_damage
#[derive(Clone, Copy, Debug, Default)]
pub struct Scratch(pub(super) u128);

impl Scratch {
    /// What to fill an array with.
    pub const EMPTY: Self = Self(0);
}

/// Five combined types, and the default type where no block is around.
pub(super) const STATES: usize = TYPES + 1;
pub(super) const BARE: usize = TYPES;

/// Choices remembered at least.
const REMEMBERED: usize = 32;

/// Words of [`Scratch`] that [`Wanted::plan_least_damage`] needs for so many registers (those
/// that may be used) and such a width: 16 bytes each.
///
/// [`Wanted::plan_least_damage`]: super::Wanted::plan_least_damage
///
/// ```
/// use mtrr_pat::layout::{Scratch, scratch_len};
/// use mtrr_pat::ranges::PhysBits;
///
/// static SCRATCH: [Scratch; scratch_len(10, PhysBits::MAX)] =
///     [Scratch::EMPTY; scratch_len(10, PhysBits::MAX)];
/// assert_eq!(size_of_val(&SCRATCH), 50_016);
/// ```
#[must_use]
pub const fn scratch_len(registers: usize, bits: PhysBits) -> usize {
    let levels = level(bits.get() as u32) + 1;
    let capped = if registers < MAX_VARIABLE {
        registers
    } else {
        MAX_VARIABLE
    };
    let vector = STATES * (capped + 1);
    // One vector per level, the current one and one being made.
    (levels + 2) * vector + REMEMBERED * entry_words(vector)
}

/// Words that the choices of one node take: a half-word per state and number of registers, and
/// one for which halves are split.
const fn entry_words(vector: usize) -> usize {
    (vector + 1).div_ceil(8)
}

/// Refuses scratch that is too short.
pub(super) const fn check_scratch(
    registers: usize,
    bits: PhysBits,
    scratch: &[Scratch],
) -> Result<(), LayoutError> {
    let (need, have) = (scratch_len(registers, bits), scratch.len());
    if have < need {
        return Err(LayoutError::ShortScratch { need, have });
    }
    Ok(())
}

/// What is lost, in pages: 42 bits for each priority, the highest on top, so that the order of
/// numbers is the order of damage. All pages of 52 address bits fit in 41 bits.
pub(super) type Damage = u128;

pub(super) const FIELD: u32 = 42;
pub(super) const UNBEARABLE: Damage = Damage::MAX;

pub(super) fn in_bytes(damage: Damage) -> Lost {
    let field = |priority: u32| {
        let pages = (damage >> (priority * FIELD)) as u64 & ((1 << FIELD) - 1);
        pages << PAGE_ORDER
    };
    Lost {
        low: field(0),
        normal: field(1),
        high: field(2),
    }
}

/// The choices remembered last: entries of a fixed count of half-words, eight to a word.
pub(super) struct Remembered<'s> {
    ring: &'s mut [Scratch],
    words: usize,
    /// Where the next entry goes, and how many before it are remembered.
    next: usize,
    valid: usize,
}

/// The choices of one node.
pub(super) struct Entry<'a>(&'a [Scratch]);

impl<'s> Remembered<'s> {
    pub(super) const fn new(ring: &'s mut [Scratch], half_words: usize) -> Self {
        Self {
            ring,
            words: half_words.div_ceil(8),
            next: 0,
            valid: 0,
        }
    }

    /// How many entries there is room for.
    fn room(&self) -> usize {
        self.ring.len() / self.words
    }

    pub(super) fn push(&mut self, half_words: &[u16]) {
        let entry = self.ring.chunks_exact_mut(self.words).nth(self.next);
        for (word, part) in entry.into_iter().flatten().zip(half_words.chunks(8)) {
            let halves = part.iter().rev();
            word.0 = halves.fold(0, |word, half| word << 16 | u128::from(*half));
        }
        self.next = (self.next + 1) % self.room().max(1);
        self.valid = self.room().min(self.valid + 1);
    }

    /// Forgets the entry pushed last and gives it back, if it is still remembered.
    pub(super) fn pop(&mut self) -> Option<Entry<'_>> {
        let room = self.room();
        self.valid = self.valid.checked_sub(1)?;
        self.next = (self.next + room).checked_sub(1)? % room;
        let entry = self.ring.chunks_exact(self.words).nth(self.next)?;
        Some(Entry(entry))
    }
}

impl Entry<'_> {
    pub(super) fn get(&self, index: usize) -> Option<u16> {
        let word = self.0.get(index / 8)?;
        Some((word.0 >> (index % 8 * 16)) as u16)
    }
}

//! One memory type per physical range: requests, conflicts, write-combining refused by policy.
//!
//! Owns who holds which type where; refuses to know page tables. The processor would let two
//! mappings give one page two types; the manuals forbid it, and this table is what keeps a
//! kernel from doing it.

use core::fmt;
use core::ops::Range;

use crate::combine::CombineRule;
use crate::lookup::MtrrMap;
use crate::memtype::PatType;
pub use crate::policy::WriteCombining;

mod error;
mod grant;

pub use error::ReserveError;
pub use grant::{Grant, Granted};

const PAGE: u64 = 0x1000;

/// The end of the largest physical address space there is.
const LIMIT: u64 = 1 << 52;

/// What a request does when part of its range is reserved with another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Fail, and say what is in the way.
    #[default]
    Exact,
    /// Take the type that already holds, and say so.
    AcceptExisting,
}

/// A wanted memory type for a range of physical addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The bytes; whole pages are reserved, so a range is widened to the pages it touches.
    pub range: Range<u64>,
    /// The type.
    pub wanted: PatType,
    /// What to do when another type holds.
    pub on_conflict: OnConflict,
}

impl Request {
    /// Asks for exactly this type.
    #[must_use]
    pub const fn new(range: Range<u64>, wanted: PatType) -> Self {
        Self {
            range,
            wanted,
            on_conflict: OnConflict::Exact,
        }
    }

    /// Asks for this type, or the one that already holds.
    #[must_use]
    pub const fn or_existing(range: Range<u64>, wanted: PatType) -> Self {
        Self {
            range,
            wanted,
            on_conflict: OnConflict::AcceptExisting,
        }
    }
}

/// One range that is held, how often, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// First byte; a multiple of 4 KiB.
    pub start: u64,
    /// First byte after it; a multiple of 4 KiB.
    pub end: u64,
    /// The type.
    pub memtype: PatType,
    /// How many requests for this very range are not yet released.
    pub count: u32,
}

impl Reservation {
    const fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end.saturating_sub(1);
        write!(f, "{:#x}-{last:#x} {}", self.start, self.memtype)?;
        if self.count != 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

/// The memory types that are spoken for: at most `N` different ranges, without heap.
///
/// The rules. A page that is reserved has one type until the last request for it is released. A
/// request over free pages only gets what it wants. One that touches reserved pages of one type
/// gets that type for all of its range ([`OnConflict::AcceptExisting`]), or fails unless that is
/// the type it wants. One that touches reserved pages of several types always fails: no one type
/// would be right. Ranges may overlap in any way; a range is released as it was requested, and the
/// same range requested again is counted, not stored again.
///
/// The table has no lock: it belongs behind the one that guards the kernel's mappings.
///
/// ```
/// use mtrr_pat::combine::CombineRule;
/// use mtrr_pat::lookup::MtrrMap;
/// use mtrr_pat::memtype::PatType;
/// use mtrr_pat::ranges::PhysBits;
/// use mtrr_pat::reserve::{Request, Reservations, WriteCombining};
/// use mtrr_pat::snapshot::Snapshot;
///
/// let map = MtrrMap::new(&Snapshot::empty(PhysBits::MAX));
/// let mut table = Reservations::<16>::new(WriteCombining::Allowed);
/// let frame_buffer = 0xd000_0000..0xd080_0000;
/// let first = Request::new(frame_buffer.clone(), PatType::WriteCombining);
/// assert!(table.reserve(&first, &map, CombineRule::Intel)?.is_as_wanted());
///
/// let second = Request::or_existing(frame_buffer, PatType::Uncachable);
/// let grant = table.reserve(&second, &map, CombineRule::Intel)?;
/// assert_eq!(grant.memtype, PatType::WriteCombining);
/// assert!(!grant.is_as_wanted());
/// # Ok::<(), mtrr_pat::reserve::ReserveError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reservations<const N: usize> {
    slots: [Option<Reservation>; N],
    write_combining: WriteCombining,
}

impl<const N: usize> Reservations<N> {
    /// An empty table.
    #[must_use]
    pub const fn new(write_combining: WriteCombining) -> Self {
        Self {
            slots: [None; N],
            write_combining,
        }
    }

    /// Reserves a range, and says which type its mapping must have, and which it then really has
    /// under these MTRRs.
    ///
    /// The `map` is only read for the answer; it does not decide what is granted.
    ///
    /// # Errors
    /// - [`ReserveError::BadRange`]: the range is empty or ends above 2^52.
    /// - [`ReserveError::Conflict`]: another type holds, and only the wanted one would do.
    /// - [`ReserveError::SeveralTypes`]: parts of the range are held with different types.
    /// - [`ReserveError::Full`]: all `N` places are taken.
    /// - [`ReserveError::TooOften`]: this very range is held `u32::MAX` times.
    ///
    /// The table is unchanged after an error.
    pub fn reserve(
        &mut self,
        request: &Request,
        map: &MtrrMap,
        rule: CombineRule,
    ) -> Result<Grant, ReserveError> {
        let (start, end) = pages(&request.range)?;
        let wanted = self.under_policy(request.wanted);
        let memtype = match self.holding(start, end)? {
            None => wanted,
            Some(held) if held.memtype == wanted => wanted,
            Some(held) => match request.on_conflict {
                OnConflict::AcceptExisting => held.memtype,
                OnConflict::Exact => return Err(ReserveError::Conflict { held, wanted }),
            },
        };
        let reservation = self.count_up(start, end, memtype)?;
        let granted = if memtype == request.wanted {
            Granted::AsWanted
        } else if memtype == wanted {
            Granted::WriteCombiningRefused
        } else {
            Granted::Existing
        };
        Ok(Grant::new(reservation, request.wanted, granted, map, rule))
    }

    /// Releases one request for exactly this range; returns how many are left.
    ///
    /// # Errors
    /// [`ReserveError::NotReserved`] when the range, as widened to pages, is not held; a part of a
    /// reservation cannot be released. [`ReserveError::BadRange`] as for a request.
    pub fn release(&mut self, range: Range<u64>) -> Result<u32, ReserveError> {
        let (start, end) = pages(&range)?;
        for slot in &mut self.slots {
            if let Some(held) = slot
                && (held.start, held.end) == (start, end)
            {
                held.count = held.count.saturating_sub(1);
                let left = held.count;
                if left == 0 {
                    *slot = None;
                }
                return Ok(left);
            }
        }
        Err(ReserveError::NotReserved { start, end })
    }

    /// The type an address is held with, if it is.
    #[must_use]
    pub fn memtype_at(&self, addr: u64) -> Option<PatType> {
        self.iter()
            .find(|held| held.start <= addr && addr < held.end)
            .map(|held| held.memtype)
    }

    /// Every range that is held, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.slots.iter().flatten()
    }

    /// How many different ranges are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// How many different ranges there is room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        N
    }

    const fn under_policy(&self, wanted: PatType) -> PatType {
        match (wanted, self.write_combining) {
            (PatType::WriteCombining, WriteCombining::Refused) => PatType::UncachedMinus,
            _ => wanted,
        }
    }

    /// What holds in a range: nothing, or one type (named by one of its reservations).
    fn holding(&self, start: u64, end: u64) -> Result<Option<Reservation>, ReserveError> {
        let mut touched = self.iter().filter(|held| held.overlaps(start, end));
        let Some(first) = touched.next() else {
            return Ok(None);
        };
        match touched.find(|held| held.memtype != first.memtype) {
            None => Ok(Some(*first)),
            Some(second) => Err(ReserveError::SeveralTypes {
                first: *first,
                second: *second,
            }),
        }
    }

    /// Adds a request to the reservation of its range, or starts one.
    fn count_up(
        &mut self,
        start: u64,
        end: u64,
        memtype: PatType,
    ) -> Result<Reservation, ReserveError> {
        let same = |held: &&mut Reservation| (held.start, held.end) == (start, end);
        if let Some(held) = self.slots.iter_mut().flatten().find(same) {
            held.count = held
                .count
                .checked_add(1)
                .ok_or(ReserveError::TooOften { start, end })?;
            return Ok(*held);
        }
        let free = self.slots.iter_mut().find(|slot| slot.is_none());
        let slot = free.ok_or(ReserveError::Full { capacity: N })?;
        Ok(*slot.insert(Reservation {
            start,
            end,
            memtype,
            count: 1,
        }))
    }
}

/// The first byte and the end of the pages a range touches.
fn pages(range: &Range<u64>) -> Result<(u64, u64), ReserveError> {
    if range.is_empty() || range.end > LIMIT {
        return Err(ReserveError::BadRange {
            start: range.start,
            end: range.end,
        });
    }
    let start = range.start & !(PAGE - 1);
    let end = (range.end + (PAGE - 1)) & !(PAGE - 1);
    Ok((start, end))
}

//! What Linux says of the types pages are mapped with: its list of them, and requests it refused.

use mtrr_pat::memtype::PatType;

/// Most ranges kept of one list, and most lists.
const MAX_RANGES: usize = 4096;
const MAX_LISTS: usize = 4;
/// Most refused requests kept.
const MAX_REFUSED: usize = 64;

/// One range of a list, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapped {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// The type byte.
    pub memtype: u8,
}

/// One request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Who asked, if the line says so.
    pub program: String,
    /// The types that met, in the order of the line.
    pub met: Option<(PatType, PatType)>,
    /// What was asked for.
    pub asked: Option<PatType>,
}

/// All of one input.
#[derive(Clone, Debug, Default)]
pub struct PageTypes {
    /// Lists, in the order of the input.
    pub lists: Vec<Vec<Mapped>>,
    /// Refused requests.
    pub refused: Vec<Refused>,
    /// Requests for another type than write-back of memory the kernel has mapped itself.
    pub of_ram: Vec<Refused>,
    /// A heading was seen: the next range opens a list.
    pub opens: bool,
}

impl PageTypes {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.refused.is_empty() && self.of_ram.is_empty()
    }

    /// Takes one range of a list; lists are in the order of addresses, up or down.
    pub fn add(&mut self, range: Mapped) {
        let turned = self.lists.last().is_some_and(|list| turns(list, range));
        if (self.opens || turned || self.lists.is_empty()) && self.lists.len() < MAX_LISTS {
            self.lists.push(Vec::new());
        }
        self.opens = false;
        if let Some(list) = self.lists.last_mut()
            && list.len() < MAX_RANGES
        {
            list.push(range);
        }
    }

    /// Takes a refused request; two lines may tell of one.
    pub fn refuse(&mut self, new: Refused) {
        let same = |old: &&mut Refused| (old.start, old.end) == (new.start, new.end);
        if let Some(old) = self.refused.iter_mut().find(same) {
            old.met = old.met.or(new.met);
            old.asked = old.asked.or(new.asked);
            if old.program.is_empty() {
                old.program = new.program;
            }
        } else if self.refused.len() < MAX_REFUSED {
            self.refused.push(new);
        }
    }

    /// Takes a request for memory that stays write-back.
    pub fn ram_refused(&mut self, new: Refused) {
        if self.of_ram.len() < MAX_REFUSED && !self.of_ram.contains(&new) {
            self.of_ram.push(new);
        }
    }
}

/// Whether `range` leaves the direction in which `list` goes.
fn turns(list: &[Mapped], range: Mapped) -> bool {
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        return false;
    };
    match first.start.cmp(&last.start) {
        std::cmp::Ordering::Less => range.start < last.start,
        std::cmp::Ordering::Greater => range.start > last.start,
        std::cmp::Ordering::Equal => false,
    }
}

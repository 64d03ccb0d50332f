//! Which line of an input gave which register: where a second listing begins, and whether the input
//! runs backwards.

use std::collections::BTreeSet;

/// Most marks kept: an input with more is read once, as one state.
const MOST: usize = 100_000;

/// Rank of variable range 0 in a table: headings and fixed ranges come before.
pub const FIRST_RANGE: u32 = 0x200;

/// A kind of listing. A register comes once in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// A table of a kernel or firmware log.
    Table,
    /// /proc/mtrr.
    Proc,
    /// Registers by number or name.
    Msr,
    /// The kernel's map of types.
    Map,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Marks {
    seen: BTreeSet<(Listing, u32, u32)>,
    last: Option<(Listing, u32, u32)>,
    /// Lines where a register came again: each begins another state.
    pub starts: Vec<u64>,
    up: u32,
    down: u32,
}

impl Marks {
    /// Notes that `line` gives a register of `cpu`; `rank` grows along a listing. True when the
    /// register came before: another listing begins.
    pub fn saw(&mut self, listing: Listing, cpu: u32, rank: u32, line: u64) -> bool {
        let key = (listing, cpu, rank);
        if let Some((before, of, last)) = self.last.replace(key)
            && (before, of) == (listing, cpu)
        {
            self.up += u32::from(rank > last);
            self.down += u32::from(rank < last);
        }
        if self.seen.len() >= MOST || self.seen.insert(key) {
            return false;
        }
        self.seen.clear();
        self.seen.insert(key);
        self.starts.push(line);
        true
    }

    /// Whether any register was seen.
    pub fn any(&self) -> bool {
        self.last.is_some()
    }

    /// Whether the lines come last first, as `journalctl -r` prints them.
    pub fn backwards(&self) -> bool {
        self.down >= 2 && self.down > 2 * self.up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_that_comes_again_begins_another_state() {
        let mut marks = Marks::default();
        for (line, rank) in [(1, 0), (2, 1), (3, 3), (4, 2), (5, 0), (6, 1)] {
            marks.saw(Listing::Proc, 0, rank, line);
        }
        assert_eq!(marks.starts, [5]);
        assert!(!marks.backwards());
        let mut marks = Marks::default();
        for rank in (0..8).rev() {
            marks.saw(Listing::Table, 0, rank, 9);
        }
        assert!(marks.backwards());
    }
}

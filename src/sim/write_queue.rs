//! The queue through which stores to devices and cache misses of all cores leave the processor.
//!
//! Owns why one core that streams write-combined stores can slow down all others: its stores are
//! posted faster than the device takes them, fill the shared queue, and everybody's misses wait
//! for a place. A core that stores to uncachable memory waits for each store, so it holds one
//! place at a time; a core whose data fits its first-level cache needs none.

use std::collections::BTreeSet;

/// What is on its way out of the processor.
#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    /// When each entry leaves; the number tells equal ones apart.
    entries: BTreeSet<(u64, u64)>,
    next: u64,
    /// Until when the device is busy.
    device: u64,
}

impl WriteQueue {
    /// When a request made `now` gets a place among `places`.
    fn admit(&mut self, now: u64, places: usize) -> u64 {
        while self
            .entries
            .first()
            .is_some_and(|(leaves, _)| *leaves <= now)
        {
            self.entries.pop_first();
        }
        if self.entries.len() < places.max(1) {
            return now;
        }
        self.entries.pop_first().map_or(now, |(leaves, _)| leaves)
    }

    fn insert(&mut self, leaves: u64) {
        self.next += 1;
        self.entries.insert((leaves, self.next));
    }

    /// A store the device takes `cost` for: when it had a place, and when it is through.
    pub(super) fn store(&mut self, now: u64, places: usize, cost: u64) -> (u64, u64) {
        let start = self.admit(now, places);
        self.device = self.device.max(start) + cost;
        self.insert(self.device);
        (start, self.device)
    }

    /// A line from memory: when it is there.
    pub(super) fn fetch(&mut self, now: u64, places: usize, cost: u64) -> u64 {
        let done = self.admit(now, places) + cost;
        self.insert(done);
        done
    }
}

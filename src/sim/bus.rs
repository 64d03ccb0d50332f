//! The queue through which stores to devices and cache misses of all cores leave the processor.
//!
//! Owns why one core that streams write-combined stores can slow down all others: its stores are
//! posted faster than the device takes them, fill the shared queue, and everybody's misses wait
//! for a place. A core that stores to uncachable memory waits for each store, so it holds one
//! place at a time; a core whose data fits its first-level cache needs none.

use std::collections::BTreeSet;

use super::cpu::SimCpu;
use super::log::Op;
use super::state::State;
use crate::memtype::PatType;

const LINE: u64 = 64;
const UNCACHED_STORE: u64 = 8;

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
    fn store(&mut self, now: u64, places: usize, cost: u64) -> (u64, u64) {
        let start = self.admit(now, places);
        self.device = self.device.max(start) + cost;
        self.insert(self.device);
        (start, self.device)
    }

    /// A line from memory: when it is there.
    fn fetch(&mut self, now: u64, places: usize, cost: u64) -> u64 {
        let done = self.admit(now, places) + cost;
        self.insert(done);
        done
    }
}

impl SimCpu<'_> {
    /// Stores to `bytes` bytes of device memory from `address` up, as fast as its memory type
    /// allows.
    pub fn stream_stores(&mut self, address: u64, bytes: u64) {
        let mut at = address;
        while at < address + bytes {
            self.take_interrupts();
            let mut state = self.shared.enter(self.number);
            at += state.stream_one(self.number, at);
        }
    }

    /// Reads a buffer of this size once, line by line. It stays in the first-level cache if it
    /// fits there.
    pub fn sweep(&mut self, bytes: u64) {
        for _ in 0..bytes.div_ceil(LINE) {
            self.take_interrupts();
            let mut state = self.shared.enter(self.number);
            state.sweep_line(self.number, bytes);
        }
    }
}

impl State {
    /// One store, or one combined line: how many bytes it was.
    fn stream_one(&mut self, cpu: usize, address: u64) -> u64 {
        self.check_sibling(cpu, "a store to a device");
        let (held, refill) = self.translate(cpu, address);
        self.spend(cpu, refill);
        self.record(cpu, Op::Store(address));
        let costs = self.config.costs;
        let now = self.cpus[cpu].time;
        let pace = self.pace(cpu);
        let (bytes, until) = match held {
            PatType::WriteCombining => {
                let line = self.bus.store(now, costs.write_queue, costs.device_line);
                (LINE, line.0)
            }
            PatType::WriteBack => {
                self.dirty(cpu, 1);
                (LINE, now)
            }
            _ => {
                let store = self.bus.store(now, costs.write_queue, costs.device_store);
                (UNCACHED_STORE, store.1)
            }
        };
        let stores = costs.instructions(bytes / UNCACHED_STORE, pace);
        self.spend(cpu, until - now + stores);
        bytes
    }

    fn sweep_line(&mut self, cpu: usize, bytes: u64) {
        self.check_sibling(cpu, "a sweep");
        let costs = self.config.costs;
        let now = self.cpus[cpu].time;
        let pace = self.pace(cpu);
        let fits = bytes <= costs.l1_lines * LINE && !pace.uncached;
        let until = if fits {
            now + costs.cached_access
        } else {
            self.bus
                .fetch(now, costs.write_queue, costs.uncached_access)
        };
        self.spend(
            cpu,
            until - now + costs.instructions(LINE / UNCACHED_STORE, pace),
        );
    }
}

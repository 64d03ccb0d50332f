//! Stores to devices and cache misses of all cores, through the one queue that leaves the processor.

use super::cpu::SimCpu;
use super::log::Op;
use super::state::State;
use crate::memtype::PatType;

const LINE: u64 = 64;
const UNCACHED_STORE: u64 = 8;

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

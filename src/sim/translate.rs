//! From an address to a memory type, through the TLB.

use super::state::State;
use super::tlb::{Entry, pcid};
use super::types::effective_type;
use crate::cpu::CR4_PGE;
use crate::memtype::PatType;

impl State {
    /// The slot and globalness a page is mapped with.
    fn mapping(&self, address: u64) -> (u8, bool) {
        self.config
            .mappings
            .iter()
            .find(|area| (area.start..area.end).contains(&address))
            .map_or((0, address >> 12 == self.config.code >> 12), |area| {
                (area.slot, area.global)
            })
    }

    pub(crate) fn type_now(&self, cpu: usize, address: u64, slot: u8) -> PatType {
        let this = &self.cpus[cpu];
        effective_type(
            self.config.vendor,
            &this.regs,
            &self.sets[this.set],
            address,
            slot,
        )
    }

    /// Looks a page up in the TLB, filling it if need be: the type held, and what it costs.
    pub(crate) fn translate(&mut self, cpu: usize, address: u64) -> (PatType, u64) {
        let page = address >> 12;
        let (slot, global) = self.mapping(address);
        // The G bit has no effect while PGE is clear.
        let global = global && self.cpus[cpu].regs.cr4 & CR4_PGE != 0;
        let space = pcid(self.cpus[cpu].regs.cr3, self.cpus[cpu].regs.cr4);
        if let Some(entry) = self.cpus[cpu].tlb.entries.get(&page)
            && (entry.global || entry.pcid == space)
        {
            return (entry.held, 0);
        }
        let held = self.type_now(cpu, address, slot);
        let this = &mut self.cpus[cpu];
        this.counters.tlb_fills += 1;
        this.tlb.entries.insert(
            page,
            Entry {
                held,
                slot,
                global,
                pcid: space,
            },
        );
        (held, self.config.costs.tlb_refill)
    }

    /// The pages a CPU holds under a type its registers no longer give: page address, type held,
    /// type now.
    pub(crate) fn stale(&self, cpu: usize) -> Vec<(u64, PatType, PatType)> {
        let entries = self.cpus[cpu].tlb.entries.iter();
        entries
            .map(|(page, entry)| {
                (
                    page << 12,
                    entry.held,
                    self.type_now(cpu, page << 12, entry.slot),
                )
            })
            .filter(|(_, held, now)| held != now)
            .collect()
    }
}

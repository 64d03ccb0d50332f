//! Sound machines to plant faults in.

use std::ops::Range;

use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

/// A machine whose firmware did its work: every byte of RAM is WB, nothing is wasted.
#[derive(Clone, Debug)]
pub struct Machine {
    pub cpu: Snapshot,
    /// One range per pair in use, and the memory below 640 KiB.
    pub ram: Vec<Range<u64>>,
    /// How many pairs are in use, from 0 up.
    pub used: u8,
}

impl Machine {
    pub fn ram_bytes(&self) -> u64 {
        self.ram.iter().map(|ram| ram.end - ram.start).sum()
    }

    /// Sets a pair that is free, and returns its number.
    pub fn add(&mut self, base: u64, size: u64, memtype: MemType) -> u8 {
        let range = VariableMtrr::from_block(base, size, memtype, self.cpu.phys_bits);
        let pair = self.used;
        self.cpu.variable[usize::from(pair)] = range.unwrap();
        self.used += 1;
        pair
    }

    pub fn pair(&mut self, pair: u8) -> &mut VariableMtrr {
        &mut self.cpu.variable[usize::from(pair)]
    }

    /// The block of RAM a pair covers.
    pub fn block(&self, pair: u8) -> Range<u64> {
        let range = self.cpu.variable[usize::from(pair)];
        let (base, size) = range.block(self.cpu.phys_bits).unwrap();
        base..base + size
    }
}

/// What BIOS leaves free below the video memory.
const LOW_MEMORY: Range<u64> = 0..0xa_0000;

/// Ten pairs, one to four of them in use: RAM from 0, and apart from each other above 8 GiB.
pub fn sound() -> impl Strategy<Value = Machine> {
    let sizes = proptest::collection::vec(28..32u32, 1..5);
    (37..53u8, sizes).prop_map(|(width, sizes)| {
        let mut cpu = Snapshot::empty(PhysBits::new(width).unwrap());
        cpu.cap = Some(MtrrCap::from_raw(0x50a));
        cpu.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE);
        cpu.fixed = [0x0606_0606_0606_0606; 11];
        cpu.fixed[2] = 0;
        cpu.fixed[3..].fill(0x0505_0505_0505_0505);
        cpu.pat = Some(Pat::LINUX);
        let mut machine = Machine {
            cpu,
            ram: vec![LOW_MEMORY],
            used: 0,
        };
        for (n, size) in sizes.into_iter().enumerate() {
            let base = if n == 0 { 0 } else { n as u64 * (1 << 33) };
            machine.add(base, 1 << size, MemType::WriteBack);
            let above_fixed = base.max(0x10_0000);
            machine.ram.push(above_fixed..base + (1 << size));
        }
        machine
    })
}

/// A machine, and the number of one of its pairs in use.
pub fn sound_with_pair() -> impl Strategy<Value = (Machine, u8)> {
    sound().prop_flat_map(|machine| {
        let pairs = 0..machine.used;
        (Just(machine), pairs)
    })
}

//! The registers by which firmware alone says what memory an address means, in words.

use mtrr_pat::regs::{Iorr, SysCfg};

use super::machine::Machine;

/// A line per register that the dump shows of the first CPU.
pub fn lines(machine: &Machine) -> Vec<String> {
    let (Some(routing), Some(boot)) = (machine.routing.first(), machine.boot()) else {
        return Vec::new();
    };
    let on = |syscfg: SysCfg| syscfg.contains(SysCfg::MTRR_VAR_DRAM_EN);
    let top_mem = routing.top_mem.map(|word| match boot.syscfg {
        Some(syscfg) if !on(syscfg) => format!("TOP_MEM {word:#x}: off in SYSCFG"),
        _ => format!("TOP_MEM {word:#x}: memory below, devices from there to 4 GiB"),
    });
    let iorrs = routing.iorr.iter().enumerate();
    let iorrs = iorrs.filter_map(|(index, iorr)| Some(io_range(index, (*iorr)?)));
    let tme = routing.tme_activate.map(encryption);
    top_mem.into_iter().chain(iorrs).chain(tme).collect()
}

fn io_range(index: usize, iorr: Iorr) -> String {
    if !iorr.valid() {
        return format!("IORR {index}: off");
    }
    let to = |bit: u64| match iorr.base & bit {
        0 => "devices",
        _ => "memory",
    };
    let (reads, writes) = (to(Iorr::RD_MEM), to(Iorr::WR_MEM));
    let (base, mask) = (iorr.base & !0xfff, iorr.mask & !0xfff);
    format!("IORR {index} base {base:#x} mask {mask:#x}: reads go to {reads}, writes to {writes}")
}

fn encryption(word: u64) -> String {
    const LOCKED_AND_ENABLED: u64 = 3;
    if word & LOCKED_AND_ENABLED != LOCKED_AND_ENABLED {
        return format!("TME_ACTIVATE {word:#x}: no memory encryption");
    }
    let bits = word >> 32 & 0xf;
    format!("TME_ACTIVATE {word:#x}: memory encryption, {bits} address bits hold the key's number")
}

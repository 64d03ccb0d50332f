//! RAM that is not write-back, and how it is known to be RAM: what a broken map has to be given.

use mtrr_pat::memtype::MemType;
use mtrr_pat::ranges::FIXED_END;

use super::args::Want;
use super::machine::{FOUR_GIB, Machine};
use super::map::Map;

/// Most pieces repaired.
const MOST: usize = 64;

/// What a repair gives back.
#[derive(Debug)]
pub struct Repair {
    /// The pieces, as wishes for write-back.
    pub wants: Vec<Want>,
    /// How it is known that they are RAM.
    pub source: &'static str,
    /// Whether the kernel said that it leaves RAM out.
    pub trimmed: bool,
}

impl Repair {
    /// Bytes given back.
    pub fn bytes(&self) -> u64 {
        self.wants.iter().map(|want| want.end - want.start).sum()
    }
}

/// What to repair on `machine`; `None` when nothing is known to be wrong.
pub fn of(machine: &Machine) -> Option<Repair> {
    if !machine.map_known() || !machine.map_whole() || machine.dump.hypervisor.is_some() {
        return None;
    }
    let doubt = machine.doubt();
    let map = Map::new(&machine.acting()?);
    let lost = machine.lost_bytes();
    let (ram, source) = known_ram(machine, &map, lost)?;
    let mut wants = Vec::new();
    for (start, end) in ram {
        let (start, end) = (start.max(FIXED_END).next_multiple_of(0x1000), end & !0xfff);
        for run in map
            .runs
            .iter()
            .filter(|run| run.start < end && start < run.end)
        {
            let kept = [
                MemType::WriteBack,
                MemType::WriteThrough,
                MemType::WriteProtected,
            ];
            if run
                .memtype
                .defined()
                .is_some_and(|memtype| kept.contains(&memtype))
            {
                continue;
            }
            let (start, end) = (run.start.max(start), run.end.min(end));
            // Of less than a page, no whole page is left.
            if start < end && !doubt.touches(start, end) {
                wants.push(Want {
                    start,
                    end,
                    memtype: MemType::WriteBack,
                });
            }
        }
    }
    let found = !map.cut && !wants.is_empty() && wants.len() <= MOST;
    found.then_some(Repair {
        wants,
        source,
        trimmed: lost.is_some() || !machine.dump.given_up.is_empty(),
    })
}

/// Ranges known to be RAM, and from what.
fn known_ram(
    machine: &Machine,
    map: &Map,
    lost: Option<u64>,
) -> Option<(Vec<(u64, u64)>, &'static str)> {
    if !machine.ram.is_empty() {
        return Some((machine.ram.clone(), "the memory map in the dump"));
    }
    if let Some(end) = machine.dump.ram_end.filter(|end| *end > FOUR_GIB) {
        return Some((vec![(FOUR_GIB, end)], "last_pfn in the dump"));
    }
    // The kernel says how much is lost; it is what follows the RAM above 4 GiB that is covered.
    let write_back = MemType::WriteBack.into();
    let last = map.runs.iter().rfind(|run| run.memtype == write_back)?;
    let end = last.end.checked_add(lost?)?;
    let fits = last.end > FOUR_GIB && end <= machine.bits.end();
    fits.then(|| (vec![(last.end, end)], "what the kernel says it loses"))
}

//! Where RAM ends, what of it the kernel leaves out, and from where on addresses are free.

use mtrr_pat::lookup::Run;
use mtrr_pat::memtype::MemType;
use mtrr_pat::snapshot::Snapshot;

use super::goal;
use super::machine::{FOUR_GIB, Machine};
use super::map::Map;
use super::subject::Subject;

impl Machine {
    /// Bytes of RAM that the kernel says it leaves out because they are not write-back.
    pub fn lost_bytes(&self) -> Option<u64> {
        let said = |text: &str| {
            let (_, rest) = text.split_once("losing ")?;
            let (number, _) = rest.split_once("MB")?;
            number.trim().parse::<u64>().ok()?.checked_mul(1 << 20)
        };
        let hints = &self.dump.hints;
        if hints.iter().any(|hint| hint.subject == Subject::CleanedUp) {
            // Its own arrangement of the ranges loses it, not the one in the dump.
            return None;
        }
        hints.iter().find_map(|hint| said(&hint.text))
    }

    /// From where on addresses are free in a relaxed plan, and how that is known: above RAM, but
    /// never below 4 GiB, where devices are.
    pub fn free_from(&self) -> Option<(u64, &'static str)> {
        const TOLD: &str = "the end of RAM in the dump";
        const BELOW: &str = "RAM in the dump ends below it";
        let acting = self.acting()?;
        let end = self.write_back_end(&acting);
        if let Some(top) = goal::forced_end(&acting).filter(|top| Some(*top) >= self.ram_end) {
            let above = end.filter(|end| *end > top);
            return Some(above.map_or((top, "TOP_MEM2"), |end| (end, WRITE_BACK)));
        }
        let told = self.ram_end.filter(|end| self.is_whole(*end, &acting));
        match (told, end) {
            (Some(told), _) if told >= FOUR_GIB => Some((told, TOLD)),
            (Some(_), _) => Some((FOUR_GIB, BELOW)),
            (None, Some(end)) => Some((end.max(FOUR_GIB), WRITE_BACK)),
            (None, None) => None,
        }
    }

    /// Whether the dump tells where RAM is, or at least where it ends.
    pub fn ram_told(&self) -> bool {
        let acting = self.acting();
        let told = |acting| self.ram_end.is_some_and(|end| self.is_whole(end, &acting));
        acting.is_some_and(told)
    }

    /// What of RAM is not known, in a few words; nothing where its end is.
    pub fn ram_lacks(&self) -> Option<&'static str> {
        let low = self.ram.is_empty() && self.dump.is_all_ram() == Some(false);
        match (self.ram_told(), low) {
            (true, _) => None,
            (false, true) => Some("where RAM above 4 GiB ends"),
            (false, false) => Some("where RAM is"),
        }
    }

    /// Where write-back memory ends, if the default type is another.
    fn write_back_end(&self, acting: &Snapshot) -> Option<u64> {
        let write_back = MemType::WriteBack.into();
        let runs = Map::new(acting).runs;
        let last = runs.iter().rfind(|run| run.memtype == write_back)?;
        (acting.def_type.memtype() != Ok(MemType::WriteBack)).then_some(last.end)
    }

    /// Whether RAM really ends there: a page count may be that of low memory alone, and a memory
    /// map may be cut. Then there is write-back memory above 4 GiB of which it knows nothing.
    fn is_whole(&self, ram_end: u64, acting: &Snapshot) -> bool {
        if self.dump.ram_whole && !self.ram.is_empty() {
            return true;
        }
        let counted = self.ram.is_empty() || self.dump.ram_end == Some(ram_end);
        if let (true, Some(all)) = (counted, self.dump.is_all_ram()) {
            return all;
        }
        if acting.def_type.memtype() == Ok(MemType::WriteBack) {
            return !self.ram.is_empty() || ram_end > FOUR_GIB;
        }
        let write_back = MemType::WriteBack.into();
        let high = |run: &&Run| run.memtype == write_back && run.start >= FOUR_GIB;
        let runs = Map::new(acting).runs;
        !runs.iter().filter(high).any(|run| run.start >= ram_end)
    }
}

/// How the end of RAM is guessed where the dump does not tell it.
const WRITE_BACK: &str = "the end of write-back memory";

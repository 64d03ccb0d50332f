//! What the states on the way from one layout to another do to memory.

use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::regs::{MAX_VARIABLE, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::proc_mtrr::ProcMtrr;

/// What a state on the way does to memory that is the same before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Harm {
    /// An address that is not cacheable before and after, and is now.
    pub exposed: Option<u64>,
    /// Bytes of memory that are cached before and after, and uncached now.
    pub uncached: u64,
    /// Bytes of write-back memory that are write-through now.
    pub through: u64,
}

impl Harm {
    /// What one step into such a state costs.
    pub fn cost(self) -> u64 {
        let weight =
            |bytes: u64, each: u64| bytes.checked_ilog2().map_or(0, |log| each + u64::from(log));
        let exposed = if self.exposed.is_some() { 1_000_000 } else { 0 };
        1 + exposed + weight(self.uncached, 10_000) + weight(self.through, 100)
    }

    /// The worse of two, in each respect.
    pub fn worst(self, other: Self) -> Self {
        Self {
            exposed: self.exposed.or(other.exposed),
            uncached: self.uncached.max(other.uncached),
            through: self.through.max(other.through),
        }
    }
}

/// Compares states on the way with what is before and what comes after.
#[derive(Debug)]
pub struct Judge {
    base: Snapshot,
    /// Pieces between all edges: first byte, bytes, type before and after.
    pieces: Vec<(u64, u64, MtrrType, MtrrType)>,
}

impl Judge {
    /// For the way from `before` to `after`.
    pub fn new(before: &Snapshot, after: &Snapshot) -> Self {
        let floor = if before.fixed_in_force() {
            FIXED_END
        } else {
            0
        };
        let end = before.phys_bits.end();
        let mut edges = vec![floor, 1 << 32, before.top_mem2 & !0x7f_ffff, end];
        for pair in before.variable.iter().chain(&after.variable) {
            if let Some((start, size)) = pair.block(before.phys_bits).filter(|_| pair.valid()) {
                edges.extend([start, start + size]);
            }
        }
        edges.retain(|edge| (floor..=end).contains(edge));
        edges.sort_unstable();
        edges.dedup();
        let (old, new) = (MtrrMap::new(before), MtrrMap::new(after));
        let piece = |pair: &[u64]| {
            let at = pair[0];
            (at, pair[1] - at, old.memtype_at(at), new.memtype_at(at))
        };
        Self {
            base: *before,
            pieces: edges.windows(2).map(piece).collect(),
        }
    }

    /// What `state` does.
    pub fn of(&self, state: &ProcMtrr) -> Harm {
        let mut now = self.base;
        now.variable = [VariableMtrr::default(); MAX_VARIABLE];
        for (slot, block) in now.variable.iter_mut().zip(&state.slots) {
            if let Some(block) = block {
                let pair = VariableMtrr::from_block(
                    block.start,
                    block.size,
                    block.memtype(),
                    now.phys_bits,
                );
                *slot = pair.unwrap_or_default();
            }
        }
        let map = MtrrMap::new(&now);
        let mut harm = Harm::default();
        for (start, size, before, after) in &self.pieces {
            let now = map.memtype_at(*start);
            if now == *before || now == *after {
                continue;
            }
            let cold = |memtype: MtrrType| {
                matches!(
                    memtype.forced(),
                    MemType::Uncachable | MemType::WriteCombining
                )
            };
            let uncached = now.forced() == MemType::Uncachable;
            match (cold(*before) && cold(*after), uncached) {
                (true, true) => {}
                (true, false) => harm.exposed = harm.exposed.or(Some(*start)),
                (false, _) if cold(*before) || cold(*after) => {}
                (false, true) => harm.uncached += size,
                (false, false) => harm.through += size,
            }
        }
        harm
    }
}

//! What Linux makes of the lines written to /proc/mtrr: which slot it takes, what it refuses.

use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::snapshot::Snapshot;

/// One range as /proc/mtrr knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// First byte.
    pub start: u64,
    /// Bytes, a power of two.
    pub size: u64,
    /// The type field.
    pub memtype: u8,
}

impl Block {
    /// The range of a register pair in use; `None` when its mask has holes or its type is none.
    pub fn of(pair: &VariableMtrr, snapshot: &Snapshot) -> Option<Self> {
        let (start, size) = pair.block(snapshot.phys_bits)?;
        let memtype = pair.memtype().ok()?.raw();
        Some(Self {
            start,
            size,
            memtype,
        })
    }

    /// The same bytes with another type.
    pub fn with_type(self, memtype: MemType) -> Self {
        Self {
            memtype: memtype.raw(),
            ..self
        }
    }

    /// The type.
    pub fn memtype(self) -> MemType {
        MemType::from_field(self.memtype).unwrap_or(MemType::Uncachable)
    }

    fn encloses(&self, other: &Self) -> bool {
        self.start <= other.start && other.start + other.size <= self.start + self.size
    }
}

/// The slots of a running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcMtrr {
    /// By register number.
    pub slots: Vec<Option<Block>>,
}

impl ProcMtrr {
    /// The slots of `snapshot`.
    ///
    /// # Errors
    /// A range in use is no single block, or its type is reserved.
    pub fn of(snapshot: &Snapshot) -> Result<Self, String> {
        let slot = |pair: &VariableMtrr| match (pair.valid(), Block::of(pair, snapshot)) {
            (false, _) => Ok(None),
            (true, Some(block)) => Ok(Some(block)),
            (true, None) => Err("a mask in use has holes, which /proc/mtrr cannot handle".into()),
        };
        let slots: Result<Vec<_>, String> = snapshot.variable_ranges().iter().map(slot).collect();
        Ok(Self { slots: slots? })
    }

    /// The ranges in use, sorted.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.slots.iter().flatten().copied().collect();
        blocks.sort_unstable();
        blocks
    }

    /// `disable=N`.
    pub fn disable(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = None;
        }
    }

    /// `base=.. size=.. type=..`; whether that took a slot. A range around exactly one of its own
    /// type takes that one's place; one inside a range of its own type is only counted there.
    pub fn add(&mut self, new: Block) -> bool {
        let mut within = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(old) = *slot else { continue };
            let apart = new.start >= old.start + old.size || old.start >= new.start + new.size;
            if apart {
                continue;
            }
            let same = old.memtype == new.memtype;
            if old.encloses(&new) && same || !same && !compatible(old, new) {
                return false;
            }
            if same {
                within.push(index);
            }
        }
        let place = match within.as_slice() {
            [one] => Some(*one),
            _ => self.slots.iter().position(Option::is_none),
        };
        match place.and_then(|place| self.slots.get_mut(place)) {
            Some(slot) => {
                *slot = Some(new);
                true
            }
            None => false,
        }
    }
}

/// Whether Linux lets two types overlap: UC with anything, WB with WT.
fn compatible(one: Block, other: Block) -> bool {
    let types = [one.memtype(), other.memtype()];
    let cached = [MemType::WriteBack, MemType::WriteThrough];
    types.contains(&MemType::Uncachable) || types.iter().all(|memtype| cached.contains(memtype))
}

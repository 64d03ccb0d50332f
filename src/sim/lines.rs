//! Which CPU's cache holds which line of the shared words.

use std::collections::HashMap;

use crate::atomic::Touch;

/// Who has which cache line, as far as it bears on cost.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// By cache line, or by word where false sharing is not modelled.
    pub(super) owners: HashMap<usize, Owner>,
    /// The version of a line a CPU last saw.
    seen: HashMap<(usize, usize), u64>,
}

#[derive(Debug, Default)]
pub(super) struct Owner {
    version: u64,
    writer: usize,
    /// Somebody else read it since it was written.
    shared: bool,
    /// Until when it is on its way between caches.
    pub(super) busy: u64,
}

impl Lines {
    /// Whether the line is in its owner's state at this CPU already.
    pub(super) fn hits(&mut self, line: usize, cpu: usize, how: Touch) -> bool {
        let owner = self.owners.entry(line).or_default();
        let mine = owner.version > 0 && owner.writer == cpu;
        if how == Touch::Load {
            let version = owner.version;
            let hit = mine || self.seen.get(&(cpu, line)) == Some(&version);
            if !hit {
                owner.shared = true;
                self.seen.insert((cpu, line), version);
            }
            return hit;
        }
        let hit = mine && !owner.shared;
        owner.version += 1;
        owner.writer = cpu;
        owner.shared = false;
        hit
    }
}

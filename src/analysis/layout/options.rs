//! What may be said of the machine and the map besides the regions.

use crate::memtype::MemType;

/// Who picks the default type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultType {
    /// The planner: the one with the best answer, the earlier of UC, WB, WT, WP, WC when equal.
    Free,
    /// It is this one.
    Given(MemType),
}

/// Whether the fixed ranges decide below 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedRanges {
    /// They do: what the variable ranges say there does not matter.
    On,
    /// They do not exist or are off.
    Off,
}

/// What addresses are that no region lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// Unknown, so to be kept uncachable: devices may be there.
    Uncachable,
    /// Nothing: they may get any type. Right above the top of RAM of a machine whose devices are
    /// all listed, and often far cheaper.
    DontCare,
}

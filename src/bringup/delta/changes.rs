//! The groups of state a CPU can differ in, with the names reports use.

use core::fmt;

use bitflags::bitflags;

bitflags! {
    /// Groups of state in which a CPU differed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct Changes: u8 {
        /// Fixed-range MTRRs.
        const FIXED = 1 << 0;
        /// Variable-range MTRRs, in use or not.
        const VARIABLE = 1 << 1;
        /// DEF_TYPE: the default type, E or FE.
        const DEFAULT = 1 << 2;
        /// The PAT.
        const PAT = 1 << 3;
        /// CR0.CD or CR0.NW was found set.
        const CACHING = 1 << 4;
        /// Registers by which firmware alone decides which accesses reach memory, and what memory
        /// encryption leaves of the address: AMD's SYSCFG (bits 23:18 and 26) and TOP_MEM2, and,
        /// where a CPU is only compared, those of [`Routing`](crate::routing::Routing), Intel's
        /// TME_ACTIVATE among them. Reported, never written.
        const ROUTING = 1 << 5;
    }
}

impl Changes {
    /// The groups with the names used in reports, in the order of their bits.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::FIXED, "fixed"),
        (Self::VARIABLE, "variable"),
        (Self::DEFAULT, "default"),
        (Self::PAT, "pat"),
        (Self::CACHING, "caching"),
        (Self::ROUTING, "routing"),
    ];

    /// The names of the groups in which there was a difference.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(group, _)| self.contains(*group))
            .map(|(_, name)| name)
    }
}

impl fmt::Display for Changes {
    /// Writes the names, separated by commas; `-` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (i, name) in self.names().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

//! What goes wrong in a life.

use mtrr_pat::sim::{At, Fault, Scribble, What, firmware_map};
use mtrr_pat::snapshot::Snapshot;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    NeverArrives,
    ArrivesLate,
    ArrivesTwice,
    OtherNumber,
    /// #GP on its k-th WRMSR.
    Gp(u64),
    /// Its k-th WRMSR is ignored.
    Ignored(u64),
    VcntDiffers,
    /// SMM rewrites the MTRRs between the comparison and the first write.
    Smm,
    StuckBeforeWindow,
    StuckInWindow,
    StuckAfterWindow,
    /// Interrupts arrive at many points, also while it is held.
    Interrupts,
    /// The machine sleeps again when only some CPUs are back.
    S3Again,
}

impl Wrong {
    pub(super) fn stuck(self) -> bool {
        matches!(
            self,
            Self::StuckBeforeWindow | Self::StuckInWindow | Self::StuckAfterWindow
        )
    }

    /// The faults of CPU `cpu` in the life after the first sleep.
    pub(super) fn faults(self, cpu: usize, seed: u64) -> Vec<Fault> {
        let smm = Scribble::custom(|_, registers| *registers = smm_map());
        let one = |at, what| vec![Fault::new(cpu, at, what).in_round(1)];
        match self {
            Self::Gp(k) => one(At::Wrmsr(k), What::Gp),
            Self::Ignored(k) => one(At::Wrmsr(k), What::Ignored),
            Self::Smm => one(At::WindowEntry(1), What::Smm(smm)),
            Self::StuckBeforeWindow => one(At::WindowEntry(1), What::Stuck),
            Self::StuckInWindow => one(At::InWindow(1 + seed % 60), What::Stuck),
            Self::StuckAfterWindow => one(At::WindowExit(1), What::Stuck),
            Self::Interrupts => (1..=30)
                .map(|n| At::Op(13 * n + seed % 13))
                .map(|at| Fault::new(cpu, at, What::Interrupt).in_round(1))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// What SMM writes: a whole map, nobody's target.
pub fn smm_map() -> Snapshot {
    let mut map = firmware_map();
    map.fixed[9] = 0x0505_0505_0505_0505;
    map.variable[2] = Default::default();
    map
}

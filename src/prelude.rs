//! The dozen names a kernel needs: `use mtrr_pat::prelude::*;`.

pub use crate::cpu::CpuOps;
#[cfg(target_arch = "x86_64")]
pub use crate::cpu::native::NativeCpu;
pub use crate::error::Error;
pub use crate::policy::{Policy, PolicyError};
pub use crate::rendezvous::CpuState;
pub use crate::report::Outcome;
pub use crate::snapshot::Snapshot;
pub use crate::sync::{Attendance, CacheSync, Summary};
pub use crate::topology::{Place, bringup_order};

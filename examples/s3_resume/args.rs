//! The command line.

use clap::{Parser, ValueEnum};
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::{MtrrScope, S3, Scribble};

/// Suspends and resumes a simulated machine, and shows what each CPU needed.
#[derive(Parser)]
pub struct Args {
    /// Resync each AP as it comes up, or all together at the end; both when not given
    #[arg(long)]
    pub mode: Option<Mode>,
    /// Print one JSON object per mode, a line each, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Cores of the machine
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub cores: u16,
    /// Threads of each core
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=8))]
    pub threads: u16,
    /// Who shares a set of MTRRs
    #[arg(long, default_value = "thread")]
    pub scope: Scope,
    /// What the firmware leaves on the APs when the machine wakes
    #[arg(long, default_value = "off")]
    pub scribble: Left,
    /// Also draw what every CPU did from the wake on, as SVG, into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    Early,
    Deferred,
}

impl Mode {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Deferred => "deferred",
        }
    }

    pub const fn resync(self) -> Resync {
        match self {
            Self::Early => Resync::Early,
            Self::Deferred => Resync::Deferred,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Scope {
    Core,
    Thread,
}

impl From<Scope> for MtrrScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Core => Self::Core,
            Scope::Thread => Self::Thread,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Left {
    /// MTRRs off (E=0)
    Off,
    /// Every MTRR 0, PAT as reset leaves it
    Zeroed,
    /// One variable range of another type
    Range,
    /// The PAT alone
    Pat,
    /// MTRRs off on every second core only
    Some,
    /// What the boot CPU has: well-behaved firmware
    None,
}

impl Left {
    pub fn profile(self, cores: usize) -> S3 {
        match self {
            Self::Off => S3::all(Scribble::Off),
            Self::Zeroed => S3::all(Scribble::Zeroed),
            Self::Range => S3::all(Scribble::AnotherRange),
            Self::Pat => S3::all(Scribble::PatReset),
            Self::Some => S3::aps(Scribble::only_cores((0..cores).step_by(2), Scribble::Off)),
            Self::None => S3::all(Scribble::Kept),
        }
    }
}

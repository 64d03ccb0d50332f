//! The rules the machine watches, and what broke them.

use core::fmt;

/// A rule of the manuals, or of this crate's design, that hardware would punish silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// An MTRR that may be in force was changed with E set or with caching on.
    /// Source: Intel SDM 3A, "MTRR Considerations in MP Systems".
    MtrrWriteOutsideWindow,
    /// A shared word was touched between the clear of E and CD=0.
    SharedTouchInWindow,
    /// A thread did something else than wait and flush while a sibling had caching off.
    SiblingRan,
    /// A locked instruction was executed with E clear.
    LockedWithMtrrsOff,
    /// Kernel work used a TLB entry whose memory type is not what the registers now give.
    StaleTlb,
    /// RdMem, WrMem and the type of a fixed range were written in a reserved combination.
    /// Source: AMD APM 2, "Extended Fixed-Range MTRR Type-Field Encodings".
    ReservedFixedType,
    /// A register by which firmware decides where accesses go, or how memory is encrypted, was
    /// written: SYSCFG but for its bit 19, TOP_MEM, TOP_MEM2, an IORR, TME_ACTIVATE.
    RoutingWritten,
    /// The machine was put into S3 while an AP was neither off nor halted.
    SuspendedWhileRunning,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Virtual time, picoseconds.
    pub time: u64,
    /// The CPU that broke it.
    pub cpu: usize,
    /// The rule.
    pub rule: Rule,
    /// What exactly happened.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            cpu,
            rule,
            text,
        } = self;
        write!(f, "{time} ps CPU {cpu}: {rule:?}: {text}")
    }
}

/// The rules broken so far: what [`check`](super::Machine::check) fails with.
#[derive(Clone, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Debug for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rule(s) broken:", self.0.len())?;
        for violation in &self.0 {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Violations {}

//! One CPU's own error as plain words, for its line of shared memory.

use crate::error::{Error, Left};
use crate::regs::MsrAddr;

/// An error one CPU can have of its own, as (kind, what is left, MSR, value).
pub(super) fn from_error(error: Error) -> (u8, u8, u32, u64) {
    match error {
        Error::ReadFault { msr } => (1, 0, msr.0, 0),
        Error::WriteFault { msr, value, left } => (2, left as u8, msr.0, value),
        Error::WriteIgnored { msr, value, left } => (3, left as u8, msr.0, value),
        Error::CapDiffers { cap } => (5, 0, 0, cap),
        Error::SiblingStuck { cpu } => (6, 0, 0, cpu as u64),
        Error::TopologyUnknown => (7, 0, 0, 0),
        Error::SiblingsNotHeld { cpu } => (8, 0, 0, cpu as u64),
        Error::ReadBackFault { msr, left } => (12, left as u8, msr.0, 0),
        // No other error is one CPU's own.
        _ => (11, 0, 0, 0),
    }
}

pub(super) fn to_error(kind: u8, left: u8, msr: u32, value: u64) -> Option<Error> {
    let msr = MsrAddr(msr);
    let left = match left {
        1 => Left::RolledBack,
        2 => Left::Torn,
        3 => Left::UnusedPairs,
        4 => Left::Altered,
        _ => Left::Unchanged,
    };
    Some(match kind {
        1 => Error::ReadFault { msr },
        2 => Error::WriteFault { msr, value, left },
        3 => Error::WriteIgnored { msr, value, left },
        5 => Error::CapDiffers { cap: value },
        6 => Error::SiblingStuck {
            cpu: value as usize,
        },
        7 => Error::TopologyUnknown,
        8 => Error::SiblingsNotHeld {
            cpu: value as usize,
        },
        11 => Error::NotInitialised,
        12 => Error::ReadBackFault { msr, left },
        _ => return None,
    })
}

//! What a CPU's attempts came to, as a path and an error.

use crate::error::{Error, Left};
use crate::program::Need;
use crate::report::Path;

/// Whether this CPU's registers were left alone because acting would not have been safe.
pub(super) const fn postpones(error: Error) -> bool {
    matches!(
        error,
        Error::TopologyUnknown
            | Error::SiblingsNotHeld { .. }
            | Error::SiblingStuck { .. }
            | Error::TargetBusy
    )
}

/// What became of this CPU, by its last error and by that of an earlier attempt: what that left tells
/// more than why there was no other. But where it left the old map, and acting is not safe now, this
/// CPU is as good as one that did not try.
pub(super) fn telling(error: Error, torn: bool, failed: Option<Error>) -> Error {
    match error {
        Error::WriteFault { .. } | Error::WriteIgnored { .. } | Error::ReadBackFault { .. } => {
            still_torn(error, torn)
        }
        _ if postpones(error) && !torn => error,
        _ => failed.unwrap_or(error),
    }
}

pub(super) const fn still_torn(error: Error, torn: bool) -> Error {
    match error {
        Error::WriteFault { left, .. } | Error::WriteIgnored { left, .. }
            if matches!(left, Left::UnusedPairs) =>
        {
            error
        }
        _ if torn => error.with_left(Left::Torn),
        _ => error,
    }
}

pub(super) const fn path_of(need: Need) -> Path {
    match need {
        Need::Nothing => Path::InSync,
        Need::CachingOn => Path::CachingOn,
        Need::UnusedPairs => Path::UnusedPairs,
        Need::Pat => Path::Pat,
        Need::Window => Path::Window,
    }
}

/// The one that says more about what was done.
pub(super) fn dearer(one: Path, other: Path) -> Path {
    if (other as u8) > (one as u8) {
        other
    } else {
        one
    }
}

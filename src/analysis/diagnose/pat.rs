//! What the PAT lacks.

use super::{Finding, Kind, Place, Severity};
use crate::memtype::PatType;
use crate::pat::Slot;
use crate::snapshot::Snapshot;

/// Reports a PAT that cannot give pages the types kernels need.
pub(super) fn layout(snapshot: &Snapshot, report: &mut impl FnMut(Finding)) {
    let Some(pat) = snapshot.pat else {
        report(Finding::new(Severity::Info, Kind::NoPat));
        return;
    };
    if pat.raw() == 0 {
        report(Finding::new(Severity::Error, Kind::PatZero));
        return;
    }
    for slot in Slot::ALL {
        if let Err(found) = pat.slot(slot.index()) {
            let place = Place::PatSlot(slot.index());
            let kind = Kind::ReservedType { place, found };
            report(Finding::new(Severity::Error, kind));
        }
    }
    if pat.slot(0) != Ok(PatType::WriteBack) {
        report(Finding::new(Severity::Warning, Kind::PatSlot0NotWriteBack));
    }
    if pat.find(PatType::WriteCombining).is_none() {
        report(Finding::new(Severity::Info, Kind::PatWithoutWc));
    }
}

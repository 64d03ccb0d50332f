//! Which findings a dump bears out: what it does not show is not wrong.

use mtrr_pat::diagnose::{Finding, Kind};
use mtrr_pat::ranges::FIXED_END;

use super::doubt::Doubt;
use super::machine::Machine;

/// Whether the dump shows enough for `finding`.
pub fn borne_out(machine: &Machine, doubt: &Doubt, finding: &Finding) -> bool {
    let end = machine.bits.end();
    let all_known = machine.map_known() && !doubt.touches(FIXED_END, end);
    match &finding.kind {
        Kind::NoMtrr => machine.dump.bits_from_cpuid,
        Kind::NoPat => machine.dump.no_pat || machine.dump.bits_from_cpuid,
        Kind::NothingWriteBack { .. } | Kind::OffBlank | Kind::OffProgrammed => {
            all_known && machine.on_known()
        }
        Kind::RamNotWriteBack { .. }
        | Kind::RamWriteProtected
        | Kind::RamGivenUp { .. }
        | Kind::Tom2Overruled { .. }
        | Kind::Tom2NotWriteBack => {
            let touched = |start, end| doubt.touches(start, end);
            machine.map_known()
                && finding
                    .extent
                    .map_or(all_known, |e| !touched(e.start, e.end))
        }
        Kind::Redundant { .. }
        | Kind::NoEffect { .. }
        | Kind::UndefinedOverlap { .. }
        | Kind::NoFreePair { .. } => !machine.gaps.variable(),
        // The kernel wrote its own.
        Kind::PatWithoutWc => !machine.dump.kernels_pat_combines(),
        Kind::MaskWidth { all, .. } => !all || !machine.gaps.variable(),
        _ => true,
    }
}

/// What has to be added to a finding about memory, where the dump may have been cut.
pub fn condition(machine: &Machine, finding: &Finding) -> &'static str {
    let about_memory = matches!(
        finding.kind,
        Kind::RamNotWriteBack { .. } | Kind::NothingWriteBack { .. } | Kind::NoFreePair { .. }
    );
    if about_memory && machine.gaps.count.is_none() && machine.list_ends_input() {
        " (if no range is cut off at the end of the input)"
    } else {
        ""
    }
}

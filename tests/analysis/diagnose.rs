//! Findings against obvious evaluators: what ranges do to each other and to RAM, page by page in
//! a space of 16 pages, masks with holes included; and each fault planted in a sound machine.

mod cases;
mod effects;
mod faults;
mod garbage;
mod left_out;
mod machines;
mod routing;

use mtrr_pat::diagnose::{Context, Finding, diagnose};
use mtrr_pat::snapshot::Snapshot;

fn findings(cpus: &[Snapshot], context: &Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    diagnose(cpus, context, &mut |finding| found.push(finding));
    for finding in &found {
        let (text, fix) = (finding.to_string(), finding.fix().to_string());
        assert!(!text.is_empty() && !text.contains('\n'), "{finding:?}");
        assert!(!fix.is_empty() && !fix.contains('\n'), "{finding:?}");
        if let Some(extent) = finding.extent {
            assert!(extent.start < extent.end && extent.bytes <= extent.end - extent.start);
        }
    }
    found
}

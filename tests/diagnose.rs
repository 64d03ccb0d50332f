//! Findings against obvious evaluators: what ranges do to each other and to RAM, page by page in
//! a space of 16 pages, masks with holes included; and each fault planted in a sound machine.

#[allow(dead_code)]
#[path = "lookup/oracle.rs"]
mod oracle;

#[path = "diagnose/effects.rs"]
mod effects;
#[path = "diagnose/faults.rs"]
mod faults;
#[path = "diagnose/garbage.rs"]
mod garbage;
#[path = "diagnose/left_out.rs"]
mod left_out;
#[path = "diagnose/machines.rs"]
mod machines;
#[path = "diagnose/routing.rs"]
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

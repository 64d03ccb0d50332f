//! What changed between states in the input, as a person reads it.

use std::fmt::Write as _;

use super::changes;
use super::report::Report;
use super::style::Look;
use super::text_parts::wrapped;

/// Most lines of a change.
const MOST_CHANGES: usize = 20;

/// What changed from one state in the input to the next.
pub fn draw(report: &Report, look: Look) -> String {
    let mut out = String::new();
    for change in &report.changes {
        let title = changes::title(change);
        let _ = writeln!(out, "\n{}", look.heading(&title));
        let lines = changes::lines(change);
        for line in lines.iter().take(MOST_CHANGES) {
            let line = wrapped(&format!("  {line}"), look.columns, "    ");
            let _ = writeln!(out, "{line}");
        }
        if lines.len() > MOST_CHANGES {
            let _ = writeln!(out, "  ... and {} more", lines.len() - MOST_CHANGES);
        }
    }
    out
}

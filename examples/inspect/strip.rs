//! The map as one coloured strip that fits the terminal. Not to scale: the width of a run grows
//! with the logarithm of its size.

use std::fmt::Write as _;

use mtrr_pat::lookup::Run;

use super::map::{self, Map};
use super::style::Look;

/// Widths of the runs, at least `least` each, together `columns`; `None` when they do not fit.
pub fn widths(runs: &[Run], columns: usize, least: usize) -> Option<Vec<usize>> {
    let room = columns.checked_sub(runs.len() * least)?;
    let weight = |run: &Run| (run.bytes().max(2) as f64).log2() - 11.0;
    let total: f64 = runs.iter().map(weight).map(|w| w.max(1.0)).sum();
    let mut sum = 0.0;
    let mut used = 0;
    Some(
        runs.iter()
            .map(|run| {
                sum += weight(run).max(1.0);
                let upto = (room as f64 * sum / total).round() as usize;
                let own = upto - used;
                used = upto;
                least + own
            })
            .collect(),
    )
}

/// Two or three lines: the strip, the addresses where runs begin.
pub fn draw(map: &Map, look: Look) -> String {
    let columns = look.columns.saturating_sub(2).max(8);
    let shown = map.runs.len().min(columns);
    let runs = map.runs.get(..shown).unwrap_or_default();
    let least = if runs.len() * 3 <= columns { 3 } else { 1 };
    let Some(widths) = widths(runs, columns, least) else {
        return String::new();
    };
    let mut out = String::from(" ");
    for (run, width) in runs.iter().zip(&widths) {
        let name = map::short(run.memtype);
        let name = if name.len() > 2 { "??" } else { name };
        // Where a name does not fit: U for UC, and C, T, P, B for WC, WT, WP, WB.
        let letter = if name == "UC" {
            "U"
        } else {
            name.get(1..).unwrap_or("?")
        };
        let label = if *width >= 3 { name } else { letter };
        let _ = write!(
            out,
            "{}",
            look.on_type(run.memtype, &format!("{label:^width$}"))
        );
    }
    out.push('\n');
    out.push_str(&addresses(runs, &widths, columns));
    if shown < map.runs.len() || map.cut {
        let _ = writeln!(out, " ... {} of {} runs shown", shown, map.runs.len());
    }
    out
}

/// Start addresses under the strip, those that fit.
fn addresses(runs: &[Run], widths: &[usize], columns: usize) -> String {
    let mut line = String::new();
    let mut at = 0;
    for (run, width) in runs.iter().zip(widths) {
        let label = format!("{:#x}", run.start);
        if line.len() <= at && at + label.len() <= columns {
            while line.len() < at {
                line.push(' ');
            }
            line.push_str(&label);
            line.push(' ');
        }
        at += width;
    }
    format!(" {}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mtrr_pat::memtype::MemType;

    #[test]
    fn strips_are_exactly_as_wide_as_asked() {
        let runs: Vec<Run> = (0..20u32)
            .map(|n| Run {
                start: 1 << (n + 12),
                end: 2 << (n + 12),
                memtype: MemType::WriteBack.into(),
            })
            .collect();
        for columns in 20..200 {
            match widths(&runs, columns, 1) {
                Some(widths) => assert_eq!(widths.iter().sum::<usize>(), columns),
                None => assert!(columns < 20),
            }
        }
    }
}

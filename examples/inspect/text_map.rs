//! The map and the variable ranges, as a person reads them.

use std::fmt::Write as _;

use mtrr_pat::lookup::Run;
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::snapshot::Snapshot;

use super::doubt::Piece;
use super::machine::Machine;
use super::map;
use super::report::Report;
use super::strip;
use super::style::Look;
use super::text_parts::{address_width, wrapped};

/// Most rows of the map; how many of a longer one.
const MOST_ROWS: usize = 60;
const FEW_ROWS: usize = 12;

/// The strip and the table of the effective map.
pub fn table(report: &Report, look: Look) -> String {
    let map = &report.map;
    let machine = &report.machine;
    let mut out = format!("\n{}\n", look.heading("Memory map"));
    if machine.map_whole() {
        out.push_str(&strip::draw(map, look));
    }
    let Some(boot) = machine.boot() else {
        return out;
    };
    let width = address_width(machine.bits);
    let pieces = report.doubt.pieces(map);
    let (first, rest) = match pieces.len() {
        count if count > MOST_ROWS => pieces.split_at(FEW_ROWS),
        count => pieces.split_at(count),
    };
    for piece in first {
        let run = &piece.run;
        if !piece.certain {
            let _ = writeln!(
                out,
                "  {:#0width$x}-{:#0width$x}  {:>10}  {:<15}  {}",
                run.start,
                run.end - 1,
                map::bytes(run.bytes()),
                "not known",
                unless(report, run),
            );
            continue;
        }
        let name = run.memtype.to_string();
        let name = format!("{name:<15}");
        let _ = writeln!(
            out,
            "  {:#0width$x}-{:#0width$x}  {:>10}  {}  {}",
            run.start,
            run.end - 1,
            map::bytes(run.bytes()),
            look.on_type(run.memtype, &name),
            decided_by(machine, boot, run),
        );
    }
    if !rest.is_empty() {
        let more = if map.cut { "at least " } else { "" };
        let text = format!("  ... {more}{} pieces more: {}", rest.len(), summed(rest));
        let _ = writeln!(out, "{}", wrapped(&text, look.columns, "    "));
    }
    out
}

/// What decides the type of `run`: registers, or the kernel's word.
fn decided_by(machine: &Machine, boot: &Snapshot, run: &Run) -> String {
    if !machine.is_listed() {
        return map::decided_by(boot, run);
    }
    let fixed = boot.fixed_in_force() && run.start < FIXED_END;
    let entries = machine.dump.kernel_map.entries.values();
    let mut above = entries.filter(|entry| entry.end > FIXED_END || !fixed);
    let listed = above.any(|entry| entry.start < run.end && run.start < entry.end);
    match (fixed, fixed && run.end <= FIXED_END, listed) {
        (_, true, _) => "fixed ranges".into(),
        (true, _, _) => "fixed ranges, the kernel's map".into(),
        (_, _, true) => "the kernel's map".into(),
        _ => "default".into(),
    }
}

/// What memory is that is not certain: as far as the dump goes, and what could change it.
fn unless(report: &Report, run: &Run) -> String {
    let machine = &report.machine;
    if machine.gaps.none_shown && !machine.enabled_known {
        return "whether the MTRRs are on is not in the input".into();
    }
    if run.end <= FIXED_END && !machine.fixed_known {
        return "the fixed ranges are not in the input".into();
    }
    let Some(boot) = machine.boot() else {
        return String::new();
    };
    if machine.is_listed() {
        return "not in the kernel's map".into();
    }
    let by = map::decided_by(boot, run);
    if !machine.gaps.variable() {
        format!("{} ({by}) unless TOP_MEM2 says write-back", run.memtype)
    } else if by == "default" {
        "no range in the input".into()
    } else {
        format!("{} ({by}) unless a missing range overlaps", run.memtype)
    }
}

/// Pieces by type: `2048 uncachable (2 GiB)`.
fn summed(pieces: &[Piece]) -> String {
    let mut kinds: Vec<(String, usize, u64)> = Vec::new();
    for piece in pieces {
        let name = match piece.certain {
            true => piece.run.memtype.to_string(),
            false => "not known".into(),
        };
        let size = piece.run.bytes();
        match kinds.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, bytes)) => {
                *count += 1;
                *bytes = bytes.saturating_add(size);
            }
            None => kinds.push((name, 1, size)),
        }
    }
    let kinds = kinds
        .iter()
        .map(|(name, count, bytes)| format!("{count} {name} ({})", map::bytes(*bytes)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// The variable ranges as firmware set them.
pub fn registers(report: &Report, look: Look) -> String {
    let machine = &report.machine;
    let Some(boot) = machine.in_dump() else {
        return String::new();
    };
    if machine.gaps.silent || machine.gaps.none_shown {
        return String::new();
    }
    let total = report.total();
    let free = total.saturating_sub(report.used());
    let title = if machine.gaps.variable() {
        format!(
            "Variable ranges: {} in use are in the input, not {}",
            report.used(),
            machine.gaps.named()
        )
    } else if machine.count_known || report.used() == total {
        let sure = if machine.count_known {
            ""
        } else {
            " (assumed)"
        };
        format!(
            "Variable ranges: {} used, {free} free of {total}{sure}",
            report.used()
        )
    } else {
        // What is not listed may be free, or not there, or cut off.
        format!(
            "Variable ranges: {} used; how many exist is not in the input ({total} assumed)",
            report.used()
        )
    };
    let mut out = format!("\n{}\n", look.heading(&title));
    let width = address_width(machine.bits);
    for (index, pair) in boot
        .variable_ranges()
        .iter()
        .enumerate()
        .filter(|(_, p)| p.valid())
    {
        let name = pair
            .memtype()
            .map_or_else(|e| e.to_string(), |memtype| memtype.to_string());
        let size = match pair.block(boot.phys_bits) {
            Some((_, size)) => map::bytes(size),
            None => "mask has holes".into(),
        };
        let note = report.notes.get(index).map_or("", String::as_str);
        let note = if note.is_empty() {
            String::new()
        } else {
            format!("  <- {note}")
        };
        let row = format!(
            "  {index:>2}  base {:#0width$x}  mask {:#0width$x}  {size:>10}  {name:<15}",
            pair.base & !0xfff,
            pair.mask & !0xfff,
        );
        let _ = writeln!(out, "{}", noted(&row, &note, look));
    }
    let spare: Vec<String> = boot
        .variable_ranges()
        .iter()
        .enumerate()
        .filter(|(index, pair)| !pair.valid() && machine.shows(*index))
        .map(|(index, _)| index.to_string())
        .collect();
    if !spare.is_empty() && machine.count_known {
        let _ = writeln!(out, "  free: {}", spare.join(" "));
    }
    out
}

/// A row with its note, on the next line where it does not fit.
fn noted(row: &str, note: &str, look: Look) -> String {
    let row = row.trim_end();
    if note.is_empty() || row.chars().count() + note.chars().count() <= look.columns {
        format!("{row}{}", look.dim(note))
    } else {
        let note = wrapped(&format!("      {}", note.trim()), look.columns, "         ");
        format!("{row}\n{}", look.dim(&note))
    }
}

//! What is printed.

use mtrr_pat::cpu::{CR0_CD, CR0_NW};
use mtrr_pat::delta::Changes;
use mtrr_pat::pat::Pat;
use mtrr_pat::report::{CpuReport, Path};
use mtrr_pat::sim::Machine;
use mtrr_pat::snapshot::Snapshot;
use serde_json::json;

use crate::args::Mode;
use crate::kernel::Kernel;

/// Prints a line; a reader that has gone away is no error.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// One CPU's line, from what was seen before, done, and found after.
pub struct Line {
    report: CpuReport,
    apic_id: u32,
    core: usize,
    thread: usize,
    before: String,
    pub in_sync_after: bool,
    after: String,
}

fn state(registers: &Snapshot, caching_off: bool) -> String {
    let def = registers.def_type;
    let memtype = def.memtype().map_or("??", |memtype| memtype.short());
    let used = registers
        .variable_ranges()
        .iter()
        .filter(|r| r.valid())
        .count();
    let pat = match registers.pat {
        Some(Pat::POWER_ON) => "reset",
        Some(Pat::LINUX) => "linux",
        Some(_) => "other",
        None => "none",
    };
    let mtrr = if def.enabled() { "on " } else { "off" };
    let cache = if caching_off { " CD" } else { "" };
    format!("MTRR {mtrr} {memtype} {used} ranges, PAT {pat}{cache}")
}

/// The lines of all CPUs, after a run.
pub fn lines(kernel: &Kernel, machine: &Machine) -> Vec<Line> {
    let boot = machine.registers(0);
    let config = machine.config();
    let line = |report: CpuReport| {
        let now = machine.registers(report.cpu);
        let (cr0, ..) = machine.control_registers(report.cpu);
        let caching_off = cr0 & (CR0_CD | CR0_NW) != 0;
        let before = kernel.before[report.cpu].lock().expect("no CPU panicked");
        let (core, thread) = config.place(report.cpu);
        Line {
            report,
            apic_id: config.apic_id(report.cpu),
            core,
            thread,
            before: before.map_or_else(String::new, |(registers, off)| state(&registers, off)),
            in_sync_after: now == boot && !caching_off,
            after: state(&now, caching_off),
        }
    };
    kernel.sync.report().cpus().map(line).collect()
}

/// The path under the name the JSON promises: unused pairs change nothing that is in force.
fn json_path(path: Path) -> &'static str {
    match path {
        Path::UnusedPairs => Path::InSync.name(),
        Path::CheckedIn | Path::Differs => Path::Failed.name(),
        other => other.name(),
    }
}

/// One JSON object on one line.
pub fn print_json(mode: Mode, lines: &[Line]) {
    let cpus: Vec<_> = lines
        .iter()
        .map(|line| {
            let outcome = line.report.outcome;
            let changes = outcome.map_or(Changes::empty(), |o| o.changes) - Changes::ROUTING;
            json!({
                "cpu": line.report.cpu,
                "apic_id": line.apic_id,
                "core": line.core,
                "thread": line.thread,
                "path": outcome.map_or("failed", |o| json_path(o.path)),
                "changed": changes.names().collect::<Vec<_>>(),
                "in_sync_after": line.in_sync_after,
            })
        })
        .collect();
    let differ = lines.iter().filter(|line| !line.in_sync_after).count();
    say!(
        "{}",
        json!({"mode": mode.name(), "cpus": cpus, "differ_after": differ})
    );
}

/// The table for people; `took` is in picoseconds.
pub fn print_table(mode: Mode, lines: &[Line], took: u64) {
    let how = match mode {
        Mode::Early => "each AP by itself as it comes up",
        Mode::Deferred => "all at once when the last AP is up, slow until then",
    };
    say!("{} resync after S3: {how}", mode.name());
    say!(
        "{:>4} {:>4} {:>4} {:>6}  {:<34} {:<10} {:<28} after",
        "cpu",
        "apic",
        "core",
        "thread",
        "before",
        "path",
        "changed"
    );
    for line in lines {
        let (path, changes) = line.report.outcome.map_or_else(
            || ("none", String::new()),
            |o| (o.path.name(), o.changes.to_string()),
        );
        say!(
            "{:>4} {:>4} {:>4} {:>6}  {:<34} {:<10} {:<28} {}{}",
            line.report.cpu,
            line.apic_id,
            line.core,
            line.thread,
            line.before,
            path,
            changes,
            line.after,
            if line.in_sync_after { "" } else { "  DIFFERS" },
        );
    }
    let differ = lines.iter().filter(|line| !line.in_sync_after).count();
    say!(
        "{differ} of {} CPUs differ from the boot CPU, {:.1} ms (simulated) after the wake",
        lines.len(),
        took as f64 / 1e9
    );
    say!("path window: MTRRs written with caches off; CD: CR0.CD as reset left it\n");
}

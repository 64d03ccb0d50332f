//! The effective map as a list of runs, bounded whatever the registers hold.

use mtrr_pat::lookup::{MtrrMap, Run, Source};
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::ranges::FIXED_END;
use mtrr_pat::snapshot::Snapshot;

/// Most runs kept: masks with holes can make billions.
pub const MAX_RUNS: usize = 4096;

/// The effective map of one register file.
#[derive(Debug)]
pub struct Map {
    /// Maximal runs of one type, ascending, without gaps.
    pub runs: Vec<Run>,
    /// There were more than [`MAX_RUNS`].
    pub cut: bool,
}

impl Map {
    /// Works the map of `snapshot` out.
    pub fn new(snapshot: &Snapshot) -> Self {
        let map = MtrrMap::new(snapshot);
        let mut all = map.runs();
        let runs: Vec<Run> = all.by_ref().take(MAX_RUNS).collect();
        Self {
            runs,
            cut: all.next().is_some(),
        }
    }

    /// Whether `other` has the same types from `floor` up: where the fixed ranges decide below
    /// 1 MiB (or would, if the dump showed them), what lies there does not count.
    pub fn same_above(&self, other: &Self, floor: u64) -> bool {
        !self.cut && !other.cut && self.above(floor).eq(other.above(floor))
    }

    /// Runs from `floor` up, as comparable values.
    fn above(&self, floor: u64) -> impl Iterator<Item = (u64, u64, MtrrType)> + '_ {
        self.runs
            .iter()
            .filter(move |run| run.end > floor)
            .map(move |run| (run.start.max(floor), run.end, run.memtype))
    }
}

/// `UC`, `WB`, ... or `undefined`: the word used in `--json`.
pub fn short(memtype: MtrrType) -> &'static str {
    memtype
        .defined()
        .map_or("undefined", |memtype| memtype.short())
}

/// What decides the type of `run`, in a few words.
pub fn decided_by(snapshot: &Snapshot, run: &Run) -> String {
    let map = MtrrMap::new(snapshot);
    match map.at(run.start).source {
        Source::NoMtrr => return "no MTRRs".into(),
        Source::Disabled => return "MTRRs are off".into(),
        Source::Fixed(_) if run.end <= FIXED_END => return "fixed ranges".into(),
        Source::BeyondWidth => return "above the address width".into(),
        _ => {}
    }
    let mut parts = Vec::new();
    if snapshot.fixed_in_force() && run.start < FIXED_END {
        parts.push("fixed ranges".to_string());
    }
    let pairs: Vec<String> = touching(snapshot, run)
        .map(|index| index.to_string())
        .collect();
    match pairs.len() {
        0 => {}
        1 => parts.push(format!("range {}", pairs.join(""))),
        _ => parts.push(format!("ranges {}", pairs.join(" "))),
    }
    match map.at(run.end - 1).source {
        Source::TopMem2 => parts.push("TOP_MEM2".into()),
        Source::Default if parts.is_empty() => parts.push("default".into()),
        _ => {}
    }
    if parts.is_empty() {
        parts.push("default".into());
    }
    parts.join(", ")
}

/// The ranges in use that reach into `run` where the fixed ranges do not decide.
fn touching<'a>(snapshot: &'a Snapshot, run: &'a Run) -> impl Iterator<Item = usize> + 'a {
    let bits = snapshot.phys_bits;
    let floor = if snapshot.fixed_in_force() {
        FIXED_END
    } else {
        0
    };
    let start = run.start.max(floor);
    snapshot
        .variable_ranges()
        .iter()
        .enumerate()
        .filter(move |(_, pair)| {
            pair.valid()
                && start < run.end
                && (pair.matches(start, bits) || pair.next_change(start, bits) < run.end)
        })
        .map(|(index, _)| index)
}

/// A number of bytes as people say it: `640 KiB`, `3 GiB`, `1019.5 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = count;
    while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    let name = |unit: usize| UNITS.get(unit).copied().unwrap_or("");
    if value < 10_240 || unit + 1 == UNITS.len() {
        return format!("{value} {}", name(unit));
    }
    let mut rough = value as f64;
    while rough >= 1024.0 && unit + 1 < UNITS.len() {
        rough /= 1024.0;
        unit += 1;
    }
    format!("{rough:.1} {}", name(unit))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(0xa0000), "640 KiB");
        assert_eq!(bytes(512 << 20), "512 MiB");
        assert_eq!(bytes(3 << 30), "3 GiB");
        assert_eq!(bytes((1 << 40) - (1 << 20)), "1024.0 GiB");
        assert_eq!(bytes(1 << 52), "4 PiB");
        assert_eq!(bytes(0x1_4eff_0000), "5.2 GiB");
    }
}

//! The output of this crate's kernel example: `round 1 cpu 2 .. | after E=1 FE=1 default=6
//! ranges=2 pat=0407050600070106 differs=0`.

use super::read::Reader;
use super::words::{self, Line};

/// Reads one line, when it is of this format. The state after the resync counts, of the last
/// round. The line has no range in it, only how many there are.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    let Some(after) = line.after("| after ") else {
        return false;
    };
    let field = |name: &str| {
        let mut words = after.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let (Some(cpu), Some(enabled), Some(fixed), Some(default)) = (
        super::read_msr::cpu_of(line),
        field("E"),
        field("FE"),
        field("default").and_then(|digits| digits.parse().ok()),
    ) else {
        reader
            .dump
            .complain(line.number, "cut short: E, FE and default wanted");
        return true;
    };
    let regs = reader.dump.cpu(cpu);
    regs.enabled = Some(enabled == "1");
    regs.fixed_enabled = Some(fixed == "1");
    regs.default = Some(default);
    regs.pat = field("pat").and_then(words::hex);
    reader.dump.summary = true;
    true
}

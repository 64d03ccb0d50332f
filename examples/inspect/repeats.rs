//! Lines that come twice in a row, as where a journal and a log were merged.

use super::words::Line;

/// The line before.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    text: String,
    skipped: bool,
    /// Commands are repeated.
    commands: bool,
}

impl Repeats {
    /// Whether `line` is the one before once more; the values below an `rdmsr` command
    /// (`in_values`) may be alike.
    pub fn again(&mut self, line: &Line<'_>, in_values: bool) -> bool {
        // Lists of mapped pages have an entry for each mapping.
        let pages = line.text.contains(" @ ") || line.text.contains("PAT: [");
        let command = line.text.contains("rdmsr");
        // Values come one after the other, alike or not.
        let values = in_values && !command && line.words.len() > 1;
        let same = self.text == line.text && !self.skipped && !pages && !values;
        self.commands |= same && command;
        self.skipped = same && (line.words.len() > 1 || self.commands);
        if !self.skipped {
            self.text = line.text.to_string();
        }
        self.skipped
    }
}

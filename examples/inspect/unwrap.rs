//! What a dump is wrapped in: quoted-printable mail, JSON, HTML, CSV, lines without their ends.
//! One line of the input goes in, the lines it stands for come out.

use super::html::Html;
use super::read::MAX_LINE;
use super::words::hex;
use super::{json_text, records};

/// The state between lines.
#[derive(Debug, Default)]
pub struct Unwrap {
    /// The start of a line that a mail program broke with `=`.
    carried: String,
    /// The mail is in quoted-printable: `=3D` is `=`.
    quoted: bool,
    html: Html,
}

impl Unwrap {
    /// Whether the line before goes on.
    pub fn goes_on(&self) -> bool {
        !self.carried.is_empty() || self.html.goes_on()
    }

    /// The lines `text` stands for.
    pub fn lines(&mut self, text: &str) -> Vec<String> {
        let Some(text) = self.joined(text.trim_end()) else {
            return Vec::new();
        };
        let lines = json_text::lines(&text)
            .or_else(|| self.html.lines(&text))
            .or_else(|| fields(&text))
            .unwrap_or_else(|| vec![text]);
        let lines = lines.iter().flat_map(|line| {
            let escaped = line.matches("\\n").count() > 1;
            let line = if escaped {
                line.replace("\\n", "\n")
            } else {
                line.clone()
            };
            line.split(['\n', '\r'])
                .map(String::from)
                .collect::<Vec<_>>()
        });
        lines
            .flat_map(|line| {
                records::split(&line)
                    .into_iter()
                    .map(String::from)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// What is left when the input ends.
    pub fn finish(&mut self) -> Vec<String> {
        let carried = std::mem::take(&mut self.carried);
        let rest = self.html.finish();
        rest.into_iter()
            .chain([carried])
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// The line with what was carried over from the one before; `None` while it goes on.
    fn joined(&mut self, text: &str) -> Option<String> {
        let mut text = std::mem::take(&mut self.carried) + text;
        if text.ends_with('=') && text.len() < MAX_LINE {
            text.pop();
            self.carried = text;
            self.quoted = true;
            return None;
        }
        self.quoted |= text.match_indices("=3D").any(|(at, _)| {
            let before = text.get(..at).unwrap_or("");
            let word = before.rsplit(char::is_whitespace).next().unwrap_or("");
            // `0x201=3D..` is a register and its value.
            hex(word).is_none()
        });
        if self.quoted && text.contains('=') {
            let mode = quoted_printable::ParseMode::Robust;
            if let Ok(bytes) = quoted_printable::decode(&text, mode) {
                text = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        Some(text)
    }
}

/// The cells of a table with quotes, as programs export logs: each is a line.
fn fields(text: &str) -> Option<Vec<String>> {
    if !text.contains("\",") && !text.contains(",\"") {
        return None;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let record = reader.records().next()?.ok()?;
    (record.len() > 1).then(|| record.iter().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::Unwrap;

    fn lines(input: &[&str]) -> Vec<String> {
        let mut unwrap = Unwrap::default();
        let mut out: Vec<String> = input.iter().flat_map(|line| unwrap.lines(line)).collect();
        out.extend(unwrap.finish());
        out
    }

    #[test]
    fn mail_is_decoded_and_registers_are_not() {
        assert_eq!(
            lines(&["last_pfn =3D 0x1", "a=20b"]),
            ["last_pfn = 0x1", "a b"]
        );
        assert_eq!(lines(&["one=", " two"]), ["one two"]);
        let list = ["0x201=3D000800", "0x200=20000006"];
        assert_eq!(lines(&list), list);
    }

    #[test]
    fn exported_logs_become_their_cells() {
        let row = "\"2024-01-01\",\"kernel\",\"  0 base 000000000 mask F80000000 write-back\"";
        assert!(lines(&[row])[2].starts_with("  0 base"));
        let plain = "reg00: base=0x0 (    0MB), size= 2048MB, count=1: write-back";
        assert_eq!(lines(&[plain]), [plain]);
    }
}

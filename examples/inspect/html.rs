//! Text out of HTML, line by line: web archives of mailing lists, forum pages, tables.

use html5gum::{Token, Tokenizer};

use super::read::MAX_LINE;

/// Tags that make a line take for HTML; a kernel writes `<6>` and `<unknown>` too.
const TAGS: [&str; 31] = [
    "a",
    "b",
    "blockquote",
    "body",
    "br",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "h1",
    "h2",
    "h3",
    "head",
    "hr",
    "html",
    "i",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "tr",
    "ul",
];

/// Tags that end a line.
const BLOCKS: [&str; 14] = [
    "blockquote",
    "br",
    "dd",
    "div",
    "dt",
    "h1",
    "h2",
    "h3",
    "hr",
    "li",
    "p",
    "pre",
    "table",
    "tr",
];

/// The state between lines.
#[derive(Debug, Default)]
pub struct Html {
    /// The cells of a table row that goes on.
    row: Option<String>,
}

impl Html {
    /// Whether a row of a table goes on.
    pub fn goes_on(&self) -> bool {
        self.row.is_some()
    }

    /// The lines of text in one line of a page; `None` when it is no HTML.
    pub fn lines(&mut self, line: &str) -> Option<Vec<String>> {
        let page = self.row.is_some() || has_tag(line) || has_entity(line);
        page.then(|| self.text(line))
    }

    fn text(&mut self, line: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut now = self.row.take();
        let mut in_row = now.is_some();
        for Ok(token) in Tokenizer::new(line) {
            let (name, ends) = match &token {
                Token::String(text) => {
                    let text = String::from_utf8_lossy(text);
                    now.get_or_insert_default().push_str(&twice(&text));
                    continue;
                }
                Token::StartTag(tag) => (&tag.name, false),
                Token::EndTag(tag) => (&tag.name, true),
                _ => continue,
            };
            let name = String::from_utf8_lossy(name);
            match (name.as_ref(), ends) {
                ("tr", false) => in_row = true,
                ("tr", true) | ("table", _) => in_row = false,
                ("td" | "th", false) if now.as_ref().is_some_and(|row| !row.trim().is_empty()) => {
                    now.get_or_insert_default().push_str(" | ");
                }
                _ => {}
            }
            let block = BLOCKS.contains(&name.as_ref());
            if block && (!in_row || name == "tr") {
                out.extend(now.take());
            }
        }
        if in_row && now.as_ref().is_none_or(|row| row.len() < MAX_LINE) {
            let mut row = now.unwrap_or_default();
            row.push(' ');
            self.row = Some(row);
        } else {
            out.extend(now);
        }
        out
    }

    /// What is left when the input ends.
    pub fn finish(&mut self) -> Option<String> {
        self.row.take()
    }
}

/// Text in which an archive escaped what was escaped before.
fn twice(text: &str) -> String {
    if !has_entity(text) {
        return text.into();
    }
    let mut out = String::new();
    for Ok(token) in Tokenizer::new(text) {
        if let Token::String(text) = token {
            out.push_str(&String::from_utf8_lossy(&text));
        }
    }
    out
}

/// Whether `line` has one of the tags above.
fn has_tag(line: &str) -> bool {
    line.match_indices('<').any(|(at, _)| {
        let rest = line.get(at + 1..).unwrap_or("");
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let name = rest
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or("");
        let ends = rest.get(name.len()..).and_then(|rest| rest.chars().next());
        let closed = matches!(ends, Some('>' | '/' | ' ') | None);
        closed && name.len() < 11 && TAGS.contains(&name.to_ascii_lowercase().as_str())
    })
}

/// Whether `line` has a character written as `&name;` or `&#number;`.
fn has_entity(line: &str) -> bool {
    const NAMES: [&str; 6] = ["gt;", "lt;", "amp;", "quot;", "nbsp;", "apos;"];
    line.match_indices('&').any(|(at, _)| {
        let rest = line.get(at + 1..).unwrap_or("");
        rest.starts_with('#') || NAMES.iter().any(|name| rest.starts_with(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_lines() {
        let mut html = Html::default();
        let line = "<span class=\"q\">&gt;&gt; total RAM covered: 49144M";
        assert_eq!(html.lines(line).unwrap(), [">> total RAM covered: 49144M"]);
        assert_eq!(html.lines("a<br>b<BR/>c").unwrap(), ["a", "b", "c"]);
        assert_eq!(html.lines("x&amp;lt;y").unwrap(), ["x<y"]);
        assert_eq!(html.lines("write-combining<->uncached-minus"), None);
        assert_eq!(html.lines("<6>[    0.0] MTRR <unknown>"), None);
        assert_eq!(html.lines("a && b"), None);
    }

    #[test]
    fn a_row_is_one_line_however_its_cells_are_broken() {
        let mut html = Html::default();
        let mut all = Vec::new();
        for line in [
            "<table><tr>",
            "<td>0x200</td>",
            "<td>0x6</td>",
            "</tr>",
            "</table>",
        ] {
            all.extend(html.lines(line).unwrap());
        }
        let words: Vec<&str> = all
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert_eq!(words, ["0x200", "|", "0x6"]);
        assert_eq!(all.iter().filter(|line| line.contains("0x")).count(), 1);
        assert_eq!(html.finish(), None);
    }
}

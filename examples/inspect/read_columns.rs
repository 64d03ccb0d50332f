//! Registers in a table with a heading: Markdown, CSV, what spreadsheets export.

use super::msr_names::register_named;
use super::read::Reader;
use super::read_msr::store;
use super::words::{self, Line};

/// What the columns hold.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    separator: char,
    register: usize,
    cpu: Option<usize>,
    /// CPU and place of a value; without a CPU the row's.
    values: Vec<(Option<u32>, usize)>,
    /// Places of the two halves of a value.
    halves: Option<(usize, usize)>,
}

/// Reads one line, when it is a heading of such a table or a row of one.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    if let Some(columns) = heading(line.text) {
        reader.columns = Some(columns);
        return true;
    }
    let Some(columns) = reader.columns.clone() else {
        return false;
    };
    if line
        .text
        .chars()
        .all(|c| matches!(c, '|' | '-' | ':' | '+' | ' ' | '='))
    {
        return true;
    }
    let read = row(reader, &columns, line.text);
    if !read {
        reader.columns = None;
    }
    read
}

/// The cells of a line.
fn cells(text: &str, separator: char) -> Vec<&str> {
    let text = text.trim();
    let text = text.strip_prefix('|').unwrap_or(text);
    let text = text.strip_suffix('|').unwrap_or(text);
    text.split(separator)
        .map(|cell| cell.trim_matches(|c: char| c.is_whitespace() || "`*_\"'".contains(c)))
        .collect()
}

fn heading(text: &str) -> Option<Columns> {
    let separator = ['|', '\t', ';', ',']
        .into_iter()
        .find(|c| text.contains(*c))?;
    let names: Vec<String> = cells(text, separator)
        .iter()
        .map(|cell| cell.to_ascii_lowercase())
        .collect();
    let find = |wanted: &[&str]| {
        let mut names = names.iter();
        names.position(|name| {
            wanted
                .iter()
                .any(|word| name.split([' ', '(', '/']).any(|n| n == *word))
        })
    };
    let register = find(&["msr", "register", "reg", "address", "addr", "name"])?;
    let halves = find(&["high", "edx", "hi"]).zip(find(&["low", "eax", "lo"]));
    let cpu = find(&["cpu", "core", "thread", "processor"]).filter(|at| *at != register);
    let mut values: Vec<(Option<u32>, usize)> = names
        .iter()
        .enumerate()
        .filter_map(|(at, name)| {
            let digits = ["cpu", "core", "thread"]
                .iter()
                .find_map(|word| name.strip_prefix(word))?;
            Some((
                Some(digits.trim().trim_start_matches('#').parse().ok()?),
                at,
            ))
        })
        .collect();
    if values.is_empty() {
        values.extend(
            find(&["value", "val", "data", "content", "contents", "hex"]).map(|at| (None, at)),
        );
    }
    (halves.is_some() || !values.is_empty()).then_some(Columns {
        separator,
        register,
        cpu,
        values,
        halves,
    })
}

/// Stores one row; false when it is none.
fn row(reader: &mut Reader, columns: &Columns, text: &str) -> bool {
    let cells = cells(text, columns.separator);
    let cell = |at: usize| cells.get(at).copied().unwrap_or("");
    let name = cell(columns.register);
    let named = name
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find_map(|word| register_named(word, "").map(|(msr, _)| msr));
    let number = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(words::hex)
        .and_then(|number| u32::try_from(number).ok());
    let Some(msr) = named.or(number) else {
        return false;
    };
    let cpu = columns
        .cpu
        .and_then(|at| cell(at).parse().ok())
        .unwrap_or(reader.cpu);
    if let Some((high, low)) = columns.halves {
        if let (Some(high), Some(low)) = (words::hex(cell(high)), words::hex(cell(low))) {
            store(reader, cpu, msr, high << 32 | low & 0xffff_ffff);
        }
        return true;
    }
    for (of, at) in &columns.values {
        if let Some(value) = words::hex(cell(*at)) {
            store(reader, of.unwrap_or(cpu), msr, value);
        }
    }
    true
}

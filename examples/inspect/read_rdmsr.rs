//! `rdmsr` commands and what they print: values in the order of the registers asked for.

use super::read::{Reader, Section};
use super::read_msr::{is_ours, store};
use super::words::{self, Line};

/// Most registers asked for before a value comes, and most values kept.
const MOST: usize = 1 << 16;

/// What was asked for, and what came.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// CPU and register, in order.
    registers: Vec<(u32, u32)>,
    /// A value per line, and how often `uniq -c` counted it; `None` where the command failed.
    values: Vec<(u32, Option<u64>)>,
    /// Every CPU, decimal output, `sort`, `uniq`.
    all: bool,
    decimal: bool,
    sorted: bool,
    counted: bool,
    /// The words of a `for` loop around the command.
    words: Vec<String>,
}

impl Asked {
    /// Whether `values` begin with a register that was asked for.
    fn has(&self, values: &[u64]) -> bool {
        let first = values.first().copied();
        let mut registers = self.registers.iter();
        registers.any(|(_, msr)| Some(u64::from(*msr)) == first)
    }
}

/// Reads one line, when it is a command or a value of one.
pub fn line(reader: &mut Reader, line: &Line<'_>) -> bool {
    // "rdmsr: CPU 0 cannot read MSR 0x00000250" stands where a value would.
    if line.words.first() == Some(&"rdmsr:") || line.text.starts_with("rdmsr:pread") {
        if reader.section == Section::Rdmsr {
            reader.asked.values.push((1, None));
        }
        return true;
    }
    let looped = loop_words(line.text);
    if command(reader, line, looped.as_deref()) {
        return true;
    }
    if let Some(words) = looped {
        flush(reader);
        reader.asked = Asked {
            words,
            ..Asked::default()
        };
        return false;
    }
    if matches!(
        line.text.trim_start_matches(['>', ' ', '$', '#']),
        "do" | "done"
    ) {
        return reader.section == Section::Rdmsr;
    }
    value(reader, line)
}

/// `# rdmsr -a 0x2ff`, `rdmsr -p3 0x200`, in a loop or not.
fn command(reader: &mut Reader, line: &Line<'_>, looped: Option<&[String]>) -> bool {
    let is_command = |word: &str| {
        let word = word.trim_start_matches(['$', '(', '`', '"']);
        word == "rdmsr" || word.ends_with("/rdmsr")
    };
    let Some(at) = line.words.iter().position(|word| is_command(word)) else {
        return false;
    };
    let (mut cpu, mut all, mut decimal) = (0, false, false);
    let mut register = None;
    let mut rest = line.words.iter().skip(at + 1);
    while let Some(word) = rest.next() {
        if *word == "-p" || *word == "--processor" {
            cpu = rest.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if let Some(number) = word.strip_prefix("-p") {
            cpu = number.parse().unwrap_or(0);
        } else if word.starts_with("--") {
            all |= *word == "--all";
            decimal |= matches!(*word, "--decimal" | "--unsigned");
        } else if let Some(flags) = word.strip_prefix('-') {
            all |= flags.contains('a');
            decimal |= flags.contains(['d', 'u']);
            if flags == "f" {
                rest.next();
            }
        } else {
            register = Some(*word);
            break;
        }
    }
    let Some(register) = register else {
        return false;
    };
    if !reader.asked.values.is_empty() {
        flush(reader);
    }
    let words = looped.map_or_else(|| reader.asked.words.clone(), <[String]>::to_vec);
    let numbers = registers(register, line.text, &words);
    if numbers.is_empty() {
        return false;
    }
    reader.msr_list = true;
    reader.section = Section::Rdmsr;
    let asked = &mut reader.asked;
    asked.all = all;
    asked.decimal = decimal;
    asked.sorted = line.text.contains("sort");
    asked.counted = line.text.contains("uniq");
    asked
        .registers
        .extend(numbers.into_iter().map(|msr| (cpu, msr)));
    asked.registers.truncate(MOST);
    // `rdmsr 0x2ff = c06`: the value is there already.
    let after = line.text.split(register).nth(1).unwrap_or("").trim_start();
    if let Some(value) = after.strip_prefix(['=', ':'])
        && let Some(value) = value.split_whitespace().next().and_then(words::hex)
    {
        asked.values.push((1, Some(value)));
        flush(reader);
    }
    true
}

/// The registers an argument stands for: a number, or the loop's variable.
fn registers(argument: &str, line: &str, words: &[String]) -> Vec<u32> {
    let plain = argument.trim_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '$'));
    if !plain.contains('$') {
        return number(plain, false).into_iter().collect();
    }
    let before = plain.split('$').next().unwrap_or("");
    let hex = before.ends_with("0x");
    // `rdmsr $(printf 0x%x $i)` counts in decimal.
    let decimal = line.contains("%x") || line.contains("%X");
    words
        .iter()
        .filter_map(|word| match (hex, decimal) {
            (_, true) => word.parse().ok(),
            (true, false) => {
                words::hex(&format!("{before}{word}")).and_then(|n| u32::try_from(n).ok())
            }
            (false, false) => number(word, true),
        })
        .collect()
}

/// A register's number: hexadecimal, unless only the decimal one is a register of ours.
fn number(word: &str, plain: bool) -> Option<u32> {
    let hex = words::hex(word).and_then(|n| u32::try_from(n).ok());
    let decimal = word.parse().ok().filter(|n| is_ours(*n));
    match hex {
        Some(hex) if word.starts_with("0x") || is_ours(hex) || !plain => Some(
            decimal
                .filter(|_| !word.starts_with("0x") && !is_ours(hex))
                .unwrap_or(hex),
        ),
        other => decimal.or(other),
    }
}

/// What `for x in ..` goes through: words, `$(seq 512 527)`, `{512..527}`.
fn loop_words(text: &str) -> Option<Vec<String>> {
    let (head, list) = text.split_once(" in ")?;
    if !head.split_whitespace().any(|word| word == "for") {
        return None;
    }
    let list = list.split([';', '|']).next().unwrap_or("");
    let list = list
        .split(" do ")
        .next()
        .unwrap_or("")
        .trim_end_matches(" do");
    let inside = list.trim().trim_start_matches("$(").trim_start_matches('`');
    if let Some(bounds) = inside.strip_prefix("seq ") {
        let bounds: Vec<&str> = bounds.split([' ', ')', '`']).collect();
        return span(bounds.first()?, bounds.get(1)?);
    }
    let mut out = Vec::new();
    for word in list.split_whitespace() {
        let braces = word
            .strip_prefix('{')
            .and_then(|word| word.strip_suffix('}'));
        match braces.and_then(|inside| inside.split_once("..")) {
            Some((first, last)) => out.extend(span(first, last)?),
            None => out.push(word.to_string()),
        }
    }
    Some(out)
}

/// The numbers `first` to `last`.
fn span(first: &str, last: &str) -> Option<Vec<String>> {
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    (last.checked_sub(first)? < 4096)
        .then(|| (first..=last).map(|number| number.to_string()).collect())
}

/// Values alone on a line, or counted by `uniq -c`.
fn value(reader: &mut Reader, line: &Line<'_>) -> bool {
    if reader.section != Section::Rdmsr {
        return false;
    }
    let asked = &mut reader.asked;
    let read = |word: &&str| match asked.decimal {
        true => word
            .parse::<i64>()
            .ok()
            .map(|n| n as u64)
            .or_else(|| word.parse().ok()),
        false => words::hex(word),
    };
    let values: Option<Vec<u64>> = line.words.iter().map(read).collect();
    match values.as_deref() {
        Some([value]) => asked.values.push((1, Some(*value))),
        Some([_, value]) if asked.counted || line.text.starts_with("    ") => {
            let count = line.words.first().and_then(|word| word.parse().ok());
            asked.values.push((count.unwrap_or(1), Some(*value)));
        }
        // `0x200 0x6` is a register and its value, `0x6 0x6` the values of two CPUs.
        Some(many) if many.len() > 1 && (!line.text.contains("0x") || !asked.has(many)) => {
            asked
                .values
                .extend(many.iter().map(|value| (1, Some(*value))));
        }
        _ => {
            flush(reader);
            reader.section = Section::None;
            return false;
        }
    }
    asked.values.truncate(MOST);
    true
}

/// Stores what came for what was asked.
pub fn flush(reader: &mut Reader) {
    let words = std::mem::take(&mut reader.asked.words);
    let asked = std::mem::take(&mut reader.asked);
    reader.asked.words = words;
    let mut values: Vec<Option<u64>> = Vec::new();
    for (count, value) in &asked.values {
        let room = MOST.saturating_sub(values.len());
        values.extend(std::iter::repeat_n(*value, room.min(*count as usize)));
    }
    let counted = asked.values.iter().any(|(count, _)| *count > 1);
    if (counted || asked.sorted) && asked.values.len() > 1 {
        let text =
            "the values were counted: which CPU has which is not in the input, only how many";
        if !reader.dump.notes.iter().any(|note| note == text) {
            reader.dump.notes.push(text.into());
        }
    }
    let (registers, count) = (asked.registers.len(), values.len());
    if registers == 0 || count == 0 {
        return;
    }
    let each = count / registers;
    if registers > 1 && count % registers != 0 {
        let why = format!("{count} values for {registers} registers: a line is lost");
        reader.dump.complain(reader.dump.lines, why);
        return;
    }
    for (at, value) in values.iter().enumerate() {
        let Some((first, msr)) = asked.registers.get(at / each.max(1)) else {
            continue;
        };
        let cpu = first.saturating_add((at % each.max(1)) as u32);
        if let Some(value) = value {
            reader.positional.saw(*msr, cpu);
            store(reader, cpu, *msr, *value);
        }
    }
}

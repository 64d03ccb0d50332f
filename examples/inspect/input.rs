//! What the command line names, read as one dump; and why nothing came of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::args::Args;
use super::dump::Dump;
use super::quote::quoted;
use super::{decode, live, read};

/// Most columns of a file's name in a message.
const NAME: usize = 200;

/// Standard input.
pub struct Stdin<'a> {
    /// What can be read from it.
    pub text: &'a mut dyn BufRead,
    /// Whether somebody would have to type it.
    pub terminal: bool,
}

/// Reads what the command line names.
///
/// # Errors
/// What cannot be read, and why.
pub fn read(args: &Args, stdin: &mut Stdin<'_>) -> Result<Dump, String> {
    if args.live {
        return live::read();
    }
    if args.files.is_empty() {
        if !args.want.is_empty() && stdin.terminal {
            return Ok(Dump::default());
        }
        if stdin.terminal {
            return live::read();
        }
        let failed = |error| format!("standard input: {error}");
        let mut text = decode::text(&mut *stdin.text).map_err(failed)?;
        return read::read(&mut text).map_err(failed);
    }
    // All files make one dump, as if they were one.
    let mut all: Box<dyn Read + '_> = Box::new(io::empty());
    let mut rest = Some(&mut *stdin.text);
    let mut notes = Vec::new();
    for path in &args.files {
        if path.as_os_str() != "-" {
            let failed = |error: io::Error| format!("{}: {error}", name(path));
            let mut file = BufReader::new(File::open(path).map_err(failed)?);
            if file.fill_buf().map_err(failed)?.is_empty() {
                notes.push(format!("{}: the file is empty", name(path)));
            } else {
                let file = decode::text(file).map_err(failed)?;
                all = Box::new(all.chain(file).chain(&b"\n"[..]));
            }
        } else if let Some(stdin) = rest.take() {
            let failed = |error| format!("standard input: {error}");
            all = Box::new(all.chain(decode::text(stdin).map_err(failed)?));
        }
    }
    let mut dump = read::read(&mut BufReader::new(all))
        .map_err(|error| format!("{}: {error}", names(args)))?;
    dump.notes.append(&mut notes);
    Ok(dump)
}

/// Whether there was an input: an empty standard input is none.
pub fn given(args: &Args, dump: &Dump) -> bool {
    dump.lines > 0 || args.files.iter().any(|path| path.as_os_str() != "-")
}

/// A file's name as messages show it.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        "standard input".into()
    } else {
        quoted(path.as_os_str().as_encoded_bytes(), NAME)
    }
}

/// All that was read, by name.
fn names(args: &Args) -> String {
    if args.files.is_empty() {
        return "standard input".into();
    }
    let names: Vec<String> = args.files.iter().map(|path| name(path)).collect();
    quoted(names.join(", "), NAME)
}

/// Why an input is not readable: the first line that was tried, or that there was none.
pub fn nothing(args: &Args, dump: &Dump) -> String {
    let names = names(args);
    if let Some((line, why)) = dump.complaints.first() {
        return format!("{names}: line {line}: {why}; no MTRRs or PAT could be read");
    }
    if dump.lines == 0 {
        let what = match args.files.as_slice() {
            [] => "it is empty",
            [path] if path.as_os_str() == "-" => "it is empty",
            [_] => "the file is empty",
            _ => "all of them are empty",
        };
        return format!("{names}: {what}");
    }
    if dump.first_line.is_empty() {
        return format!("{names}: no text, only blank lines or control characters");
    }
    let which = match dump.lines {
        1 => "this one line is not of a format".to_string(),
        lines => format!("neither this nor any other of {lines} lines is of a format"),
    };
    format!(
        "{names}: \"{}\": {which} known here (/proc/mtrr, kernel or firmware log, MSR list)",
        dump.first_line
    )
}

//! `examples/inspect` seen from outside: a test per published machine, and hostile input.
//!
//! The program is compiled in as a module and run in this process. The dumps in
//! `tests/data/cases/` are from public reports; what each test wants is the report's answer.

#[path = "../examples/inspect/main.rs"]
mod inspect;

#[path = "inspect/addresses.rs"]
mod addresses;
#[path = "inspect/cases.rs"]
mod cases;
#[path = "inspect/commands.rs"]
mod commands;
#[path = "inspect/decides.rs"]
mod decides;
#[path = "inspect/formats.rs"]
mod formats;
#[path = "inspect/found.rs"]
mod found;
#[path = "inspect/grammar.rs"]
mod grammar;
#[path = "inspect/hostile.rs"]
mod hostile;
#[path = "inspect/kernel_lines.rs"]
mod kernel_lines;
#[path = "inspect/linux_mtrr.rs"]
mod linux_mtrr;
#[path = "inspect/mail.rs"]
mod mail;
#[path = "inspect/missing.rs"]
mod missing;
#[path = "inspect/msr_lists.rs"]
mod msr_lists;
#[path = "inspect/pages.rs"]
mod pages;
#[path = "inspect/partial.rs"]
mod partial;
#[path = "inspect/plans.rs"]
mod plans;
#[path = "inspect/quotes.rs"]
mod quotes;
#[path = "inspect/routing.rs"]
mod routing;
#[path = "inspect/states.rs"]
mod states;
#[path = "inspect/width.rs"]
mod width;
#[path = "inspect/wrapped.rs"]
mod wrapped;

use serde_json::Value;

/// Runs the program on `input`; returns exit code and standard output.
fn run(options: &[&str], input: &[u8]) -> (u8, String) {
    let (code, out, _) = run_all(options, input);
    (code, out)
}

/// What the program says on standard error as it refuses `options` or `input`.
fn refused(options: &[&str], input: &[u8]) -> String {
    let (code, out, err) = run_all(options, input);
    assert_eq!((code, out.as_str()), (2, ""), "{options:?}: {err}");
    err
}

/// Exit code, standard output, standard error.
fn run_all(options: &[&str], input: &[u8]) -> (u8, String, String) {
    let words = std::iter::once("inspect").chain(options.iter().copied());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut stdin = inspect::input::Stdin {
        text: &mut &*input,
        terminal: false,
    };
    let code = inspect::run(words.map(Into::into), &mut stdin, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (code, text(out), text(err))
}

/// The dump of a case.
fn case(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/tests/data/cases/{name}/input.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of a post.
fn post(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/tests/data/posts/{name}/input.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether the JSON map is `want`: runs that touch, each with its first byte and its type; where
/// `want` begins, the check begins.
fn check_map(object: &Value, want: &[(u64, &str)]) {
    let number = |value: &Value| {
        let text = value.as_str().expect("addresses are strings");
        u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
    };
    let from = want.first().expect("something is wanted").0;
    let mut seen: Vec<(u64, String)> = Vec::new();
    for run in object["map"].as_array().expect("a list") {
        let name = run["type"].as_str().expect("a name").to_string();
        if number(&run["end"]) >= from && seen.last().is_none_or(|(_, last)| *last != name) {
            seen.push((number(&run["start"]).max(from), name));
        }
    }
    let seen: Vec<(u64, &str)> = seen.iter().map(|(at, name)| (*at, name.as_str())).collect();
    assert_eq!(seen, want, "{object}");
}

/// The object `--json` prints.
fn json(options: &[&str], input: &[u8]) -> Value {
    let (code, text) = run(&[&["--json"], options].concat(), input);
    assert!(code < 2, "exit code {code}");
    serde_json::from_str(&text).expect("one JSON object")
}

/// The type the JSON map has at `addr`.
fn type_at(object: &Value, addr: u64) -> String {
    let number = |value: &Value| {
        let text = value.as_str().expect("addresses are strings");
        u64::from_str_radix(text.strip_prefix("0x").expect("0x first"), 16).expect("hexadecimal")
    };
    let runs = object["map"].as_array().expect("a list");
    let run = runs
        .iter()
        .find(|run| (number(&run["start"])..=number(&run["end"])).contains(&addr))
        .unwrap_or_else(|| panic!("{addr:#x} is not in the map"));
    run["type"].as_str().expect("a name").to_string()
}

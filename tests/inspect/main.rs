//! `examples/inspect` seen from outside: a test per published machine, and hostile input.
//!
//! The program is compiled in as a module and run in this process. The dumps in
//! `tests/data/cases/` are from public reports; what each test wants is the report's answer.

#[path = "../../examples/inspect/main.rs"]
mod inspect;

mod addresses;
mod cases;
mod codes;
mod commands;
mod decides;
mod drivers;
mod formats;
mod found;
mod grammar;
mod hostile;
mod kernel_lines;
mod kernel_map;
mod linux_mtrr;
mod mail;
mod missing;
mod more_kinds;
mod more_posts;
mod msr_lists;
mod pages;
mod partial;
mod plans;
mod quotes;
mod ram;
mod readme;
mod routing;
mod states;
mod systems;
mod width;
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

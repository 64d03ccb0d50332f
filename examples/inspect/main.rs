//! `inspect`: give it a log or a live machine, get the map, what is wrong, and a better layout.
//!
//! Files and standard input may hold any mixture of: /proc/mtrr, /proc/cpuinfo, /proc/iomem, Linux
//! and Xen kernel logs, coreboot, EDK2 and U-Boot logs, `rdmsr` output, `MSR=value` lists per CPU
//! (`cpu 1 msr 0x2ff value 0xc06`, `0x2ff: c06 c06 0`), fwts, FreeBSD's memcontrol, and what the
//! kernel example prints. All files of one command line make one dump.
//!
//! # `--json`
//! One object, on one line. Addresses are strings, "0x...", and ranges end with their last byte.
//! What a dump does not say is null.
//! - `phys_bits`, and `phys_bits_from`: "log", "masks", "flag", "cpuid", or "assumed"
//! - `enabled`, `fixed_enabled`, `default`
//! - `map`: `{start,end,type}`, the whole space; UC WC WT WP WB or "undefined". Below 1 MiB what
//!   the variable ranges say, where the dump does not show the fixed ones
//! - `variable`: `{index,base,mask,type,valid,note}`
//! - `findings`, worst first: `{severity,kind,start,end,text,fix}`; "error", "warning", "info"
//! - `registers`: `{used,total,min_strict:{UC,WB},min_relaxed:{UC,WB},layout:[{base,size,type}]}`;
//!   the layout is for the default type with the smaller strict minimum, the present one if equal
//! - `cpus`: `{cpu,differs:[..]}` of "fixed", "variable", "default", "pat", "syscfg",
//!   "routing"
//! - `pat`: the eight types as firmware left them
//! - `routing`: `{top_mem,iorr:[{base,mask,valid}],tme_activate}`, what firmware alone sets

mod args;
mod differs;
pub mod dump;
mod echo;
mod fill;
mod findings;
mod json;
mod live;
mod machine;
mod map;
mod msr_names;
mod plan;
mod probe;
pub mod read;
mod read_example;
mod read_firmware;
mod read_kernel;
mod read_msr;
mod read_proc;
mod read_ram;
mod report;
mod routing;
mod strip;
mod style;
mod svg;
mod text;
mod text_parts;
mod text_plan;
mod useless;
mod width;
mod words;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::ExitCode;

use clap::Parser;

use args::Args;
use dump::Dump;
use report::Report;
use style::Look;

/// Nothing wrong, something found, input not readable.
const FINE: u8 = 0;
const FOUND: u8 = 1;
const UNREADABLE: u8 = 2;

#[allow(dead_code)] // the tests include this file as a module and call `run`
fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    let code = run(std::env::args_os(), &mut io::stdin().lock(), &mut out);
    ExitCode::from(code)
}

/// The whole program. What goes wrong is said on standard error.
pub fn run(
    words: impl IntoIterator<Item = OsString>,
    stdin: &mut dyn BufRead,
    out: &mut dyn Write,
) -> u8 {
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            let code = if error.use_stderr() { UNREADABLE } else { FINE };
            let _ = error.print();
            return code;
        }
    };
    match inspect(&args, stdin, out) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("inspect: {why}");
            UNREADABLE
        }
    }
}

fn inspect(args: &Args, stdin: &mut dyn BufRead, out: &mut dyn Write) -> Result<u8, String> {
    let dump = input(args, stdin)?;
    let blank = dump.is_empty();
    if blank && (args.want.is_empty() || dump.lines > 0) {
        return Err(nothing(&dump));
    }
    let machine = machine::resolve(dump, args.phys_bits, args.default);
    let look = Look::of_stdout(args.color);
    if blank {
        let text = text_plan::from_nothing(machine.bits, &args.want);
        return shown(out, &text).map(|()| FINE);
    }
    if let (Some(addr), false) = (args.addr, args.json) {
        return shown(out, &probe::answer(&machine, addr, args.pat)).map(|()| FINE);
    }
    let report = Report::new(machine, args).ok_or("no registers in the input")?;
    if let Some(path) = &args.svg {
        let title = format!("Memory types, {} address bits", report.machine.bits.get());
        std::fs::write(path, svg::draw(&report.map, &title))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let text = if args.json {
        format!("{}\n", json::object(&report))
    } else {
        text::draw(&report, look)
    };
    shown(out, &text)?;
    Ok(if report.something_wrong() {
        FOUND
    } else {
        FINE
    })
}

/// Writes `text`; a reader that has gone (`| head`) is no error.
fn shown(out: &mut dyn Write, text: &str) -> Result<(), String> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Reads what the command line names.
fn input(args: &Args, stdin: &mut dyn BufRead) -> Result<Dump, String> {
    if args.live {
        return live::read();
    }
    if args.files.is_empty() {
        if !args.want.is_empty() && io::stdin().is_terminal() {
            return Ok(Dump::default());
        }
        if io::stdin().is_terminal() {
            return live::read();
        }
        return read::read(stdin).map_err(|error| format!("standard input: {error}"));
    }
    // All files make one dump, as if they were one.
    let mut all: Box<dyn Read + '_> = Box::new(io::empty());
    let mut rest = Some(stdin);
    for path in &args.files {
        if path.as_os_str() != "-" {
            let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            all = Box::new(all.chain(file).chain(&b"\n"[..]));
        } else if let Some(stdin) = rest.take() {
            all = Box::new(all.chain(stdin));
        }
    }
    let names: Vec<String> = args
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    read::read(&mut BufReader::new(all)).map_err(|error| format!("{}: {error}", names.join(", ")))
}

/// Why an input is not readable: the first line that was tried, or that there was none.
fn nothing(dump: &Dump) -> String {
    if let Some((line, why)) = dump.complaints.first() {
        return format!("line {line}: {why}; no MTRRs or PAT could be read");
    }
    if dump.lines == 0 {
        return "the input is empty".into();
    }
    let seen = dump.first_line.escape_debug();
    format!(
        "line 1: \"{seen}\": neither this nor any of {} lines is a format known here (/proc/mtrr, \
         kernel or firmware log, MSR list)",
        dump.lines
    )
}

//! `inspect`: give it a log or a live machine, get the map, what is wrong, and a better layout.
//!
//! Files and standard input may hold any mixture of: /proc/mtrr, /proc/cpuinfo, /proc/iomem, Linux
//! and Xen kernel logs, debugfs `pat_memtype_list`, LinuxBIOS, coreboot, EDK2 and U-Boot logs,
//! `rdmsr` commands and loops with their output, `MSR=value` lists per CPU
//! (`cpu 1 msr 0x2ff value 0xc06`, `0x2ff: c06 c06 0`), tables of registers with a heading (Markdown,
//! CSV), WinDbg's `!mtrr`, fwts, FreeBSD's memcontrol and OpenBSD's memconfig, the shells of U-Boot
//! and Slim Bootloader, lines of drivers alone, and what the kernel example prints or shows as QR
//! codes. They may be compressed with gzip, in UTF-16, JSON, HTML or quoted-printable mail, or have
//! lost their newlines. All files of one command line make one dump.
//!
//! # `--json`
//! One object, on one line. Addresses are strings, "0x...", and ranges end with their last byte.
//! What a dump does not say is null.
//! - `verdict`: `{state,text,fix}`; state is "wrong", "odd", "fine" or "unknown"
//! - `phys_bits`, and `phys_bits_from`: "log", "masks", "flag", "cpuid", or "assumed"
//! - `enabled`, `fixed_enabled`, `default`
//! - `complete`: true; false where something is missing; null where the form of the input would not
//!   show that. `missing`: what, and what follows, in sentences
//! - `map`: `{start,end,type,shown}`, the whole space; UC WC WT WP WB, "undefined", or "unknown":
//!   what the dump lacks decides there. `shown` is the type that the registers in it give
//! - `variable`: `{index,base,mask,type,valid,note}`; null but for the index where it is missing
//! - `top_mem2_write_back`: AMD, up to where TOP_MEM2 makes memory above 4 GiB write-back
//! - `changes`, where the input holds several states: `{from_line,memory:[{start,end,before,after}],
//!   registers:[..]}`, from each state to the next; all else is about the last one. `from_line` is
//!   null for a log against the /proc/mtrr that came with it
//! - `findings`, worst first: `{severity,kind,start,end,text,fix}`; "error", "warning", "info"
//! - `registers`: `{used,total,min_strict:{UC,WB},min_here,min_relaxed,layout:[{base,size,type}]}`;
//!   strict leaves AMD's TOP_MEM2 out, here and relaxed do not; the layout is for the default type
//!   with the smaller minimum here, the present one if equal;
//!   `used` is null where the map is the kernel's list, which does not say which registers made it
//! - `cpus`: `{cpu,differs:[..],missing:[..]}` of "fixed", "variable", "default", "pat", "syscfg",
//!   "routing"; `missing`: of which the dump does not show all, of this CPU or of the first
//! - `pat`: the eight types as firmware left them
//! - `want`, with `--want`: `{min_here,min_relaxed,failed,way,default,layout,commands,refused,given_up,
//!   fixed}`; way is "added", "exact", "relaxed" or "damaged"
//! - `repair`, when RAM is not write-back: the same and `ram:[{start,end}]`
//! - `type`, with `--type`: `{addr,type,by,certain,last,page,pages:[{page,slots,intel,amd}]}`; `by` is
//!   "kernel map" where the kernel's list decides; `certain` is false where what is missing
//!   could decide otherwise
//! - `routing`: `{top_mem,iorr:[{base,mask,valid}],tme_activate}`, what firmware alone sets

mod args;
mod bounds;
mod causes;
mod changes;
mod codes;
mod decode;
mod differs;
mod digits;
mod doubt;
mod driver_lines;
pub mod dump;
mod echo;
mod fill;
mod findings;
mod gaps;
mod goal;
mod harm;
mod html;
pub mod input;
mod json;
mod json_plan;
mod json_text;
mod json_type;
mod kernel_bsd;
mod kernel_clean_up;
mod kernel_drivers;
mod kernel_lines;
mod kernel_map;
mod kernel_pages;
mod kernel_plain;
mod kernel_says;
mod keys;
mod known;
mod lacks;
mod live;
mod machine;
mod map;
mod marks;
mod msr_names;
mod msr_word;
mod page_findings;
mod page_types;
mod plan;
mod positional;
mod probe;
mod proc_mtrr;
mod proposal;
mod quote;
pub mod read;
mod read_cleanup;
mod read_columns;
mod read_example;
mod read_firmware;
mod read_kernel;
mod read_linuxbios;
mod read_map;
mod read_msr;
mod read_pat;
mod read_proc;
mod read_ram;
mod read_rdmsr;
mod read_said;
mod read_table;
mod read_windbg;
mod records;
mod register_findings;
mod regs;
mod repair;
mod repeats;
mod report;
mod resolve;
mod routing;
mod shown;
mod states;
mod strip;
mod style;
mod subject;
mod svg;
mod system;
mod text;
mod text_changes;
mod text_map;
mod text_parts;
mod text_plan;
mod text_proposed;
mod typed;
mod unwrap;
mod useless;
mod verdict;
mod width;
mod words;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use args::Args;
use input::Stdin;
use quote::quoted;
use report::Report;
use style::{Look, When};

/// Nothing wrong, something found, input not readable.
const FINE: u8 = 0;
const FOUND: u8 = 1;
const UNREADABLE: u8 = 2;

#[allow(dead_code)] // the tests include this file as a module and call `run`
fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let mut stdin = Stdin {
        text: &mut io::stdin().lock(),
        terminal: io::stdin().is_terminal(),
    };
    let code = run(std::env::args_os(), &mut stdin, &mut out, &mut err);
    ExitCode::from(code)
}

/// The whole program. What goes wrong is said on `err`.
pub fn run(
    words: impl IntoIterator<Item = OsString>,
    stdin: &mut Stdin<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            let _ = err.write_all(misused(error).as_bytes());
            return UNREADABLE;
        }
        Err(help) => {
            let _ = shown(out, &help_text(&help));
            return FINE;
        }
    };
    match inspect(&args, stdin, out) {
        Ok(code) => code,
        Err(why) => {
            let _ = writeln!(err, "inspect: {why}");
            UNREADABLE
        }
    }
}

/// What is wrong with the command line; its words are quoted like other input.
fn misused(mut error: clap::Error) -> String {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg] {
        if let Some(ContextValue::String(word)) = error.get(kind) {
            let word = ContextValue::String(quoted(word, 60));
            error.insert(kind, word);
        }
    }
    let text = error.render().to_string();
    text.lines().map(|line| quoted(line, 300) + "\n").collect()
}

/// The help, as bold as the terminal allows.
fn help_text(help: &clap::Error) -> String {
    let text = help.render();
    if Look::of_stdout(When::Auto).colour {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

fn inspect(args: &Args, stdin: &mut Stdin<'_>, out: &mut dyn Write) -> Result<u8, String> {
    let dump = input::read(args, stdin)?;
    let blank = dump.is_empty();
    if blank && (args.want.is_empty() || input::given(args, &dump)) {
        return Err(input::nothing(args, &dump));
    }
    let machine = resolve::resolve(dump, args.phys_bits, args.default);
    let look = Look::of_stdout(args.color);
    if blank {
        let text = match args.json {
            true => format!("{}\n", json_plan::from_nothing(machine.bits, &args.want)),
            false => text_plan::from_nothing(machine.bits, &args.want),
        };
        return shown(out, &text).map(|()| FINE);
    }
    if let (Some(addr), false) = (args.addr, args.json) {
        return shown(out, &probe::answer(&machine, addr, args.pat)).map(|()| FINE);
    }
    let report = Report::new(machine, args).ok_or("no registers in the input")?;
    if let Some(path) = &args.svg {
        let title = format!("Memory types, {} address bits", report.machine.bits.get());
        std::fs::write(path, svg::draw(&report.map, &title))
            .map_err(|error| format!("{}: {error}", input::name(path)))?;
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

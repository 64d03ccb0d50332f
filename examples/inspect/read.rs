//! Reads any mixture of the formats people post, line by line, into one [`Dump`].
//!
//! Memory is bounded: one line of at most [`MAX_BYTES`], and what a [`Dump`] may hold.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use super::dump::{Dump, Variable};
use super::positional::Positional;
use super::quote::quoted;
use super::unwrap::Unwrap;
use super::words::{Line, plain};
use super::{read_cleanup, read_example, read_firmware, read_kernel, read_msr, read_proc};
use super::{read_linuxbios, read_map, read_pat, read_windbg};

/// Bytes of a line that are looked at; the rest is skipped.
pub const MAX_LINE: usize = 4096;

/// Bytes of a line of the input: a whole dump may be on one, as in JSON.
pub const MAX_BYTES: usize = 1 << 20;

/// Lines that say nothing which a list may have in it: other messages come in between.
const LIST_GAP: u64 = 200;

/// Which block the lines before belong to; some lines mean something only there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Section {
    /// No block.
    #[default]
    None,
    /// After "MTRR fixed ranges".
    Fixed,
    /// After "MTRR variable ranges".
    Variable,
    /// After "MTRR map: ".
    Map,
    /// After WinDbg's "MTRR:  Var 8, ..".
    WinDbg,
    /// After an `rdmsr` command: the register, and the CPU the next bare value is for.
    Rdmsr {
        /// The register.
        msr: u32,
        /// The CPU.
        cpu: u32,
    },
}

/// The state between lines.
#[derive(Debug)]
pub struct Reader {
    /// What was read so far.
    pub dump: Dump,
    /// The block we are in.
    pub section: Section,
    /// Values below `rdmsr` commands.
    pub positional: Positional,
    /// The CPU a heading named.
    pub cpu: u32,
    /// An MSR list was seen: bare `200 80000006` lines count from now on.
    pub msr_list: bool,
    /// Inside a block the firmware calls temporary.
    pub temporary: bool,
    /// The /proc/mtrr block, newest one.
    pub proc_mtrr: BTreeMap<u8, Variable>,
    /// Register number of the table line before, by CPU: a smaller one opens a new table.
    last_index: BTreeMap<u32, u8>,
    /// A /proc/mtrr line that a mail program may have broken: its number and text.
    pub pending: Option<(u64, String)>,
    /// What takes a line out of what it is wrapped in.
    unwrap: Unwrap,
    /// What follows "New variable MTRRs" is not what firmware left.
    pub rearranged: bool,
    /// A line of the kernel's list that was cut.
    pub list_cut: Option<u64>,
    /// Up to this line, lines may belong to a list begun before.
    list_until: u64,
    /// By byte: whether one of [`KEYS`] starts with it.
    starts: [bool; 256],
}

impl Default for Reader {
    fn default() -> Self {
        let mut starts = [false; 256];
        for key in KEYS {
            starts[usize::from(key[0])] = true;
        }
        Self {
            dump: Dump::default(),
            section: Section::None,
            positional: Positional::default(),
            cpu: 0,
            msr_list: false,
            temporary: false,
            proc_mtrr: BTreeMap::new(),
            last_index: BTreeMap::new(),
            pending: None,
            unwrap: Unwrap::default(),
            rearranged: false,
            list_cut: None,
            list_until: 0,
            starts,
        }
    }
}

/// Reads `input` to its end.
///
/// # Errors
/// Only what reading itself fails with; nonsense in the input is no error here.
pub fn read(input: &mut dyn BufRead) -> io::Result<Dump> {
    let mut reader = Reader::default();
    let mut bytes = Vec::with_capacity(256);
    loop {
        bytes.clear();
        let (got, cut) = match read_line(input, &mut bytes) {
            Ok(line) => line,
            // A compressed file that was cut: what came out of it still counts.
            Err(error) if reader.dump.lines > 0 => {
                let why = format!("the input ends early here ({error})");
                reader.dump.complain(reader.dump.lines, why);
                return Ok(reader.finish());
            }
            Err(error) => return Err(error),
        };
        if got == 0 {
            return Ok(reader.finish());
        }
        reader.line(&bytes, cut);
    }
}

/// Reads one line, keeping at most [`MAX_BYTES`]; returns bytes consumed and whether any
/// were dropped.
fn read_line(input: &mut dyn BufRead, keep: &mut Vec<u8>) -> io::Result<(usize, bool)> {
    let kept = input.take(MAX_BYTES as u64).read_until(b'\n', keep)?;
    if kept < MAX_BYTES || keep.last() == Some(&b'\n') {
        return Ok((kept, false));
    }
    let dropped = input.skip_until(b'\n')?;
    Ok((kept + dropped, dropped > 1))
}

/// What a line outside a list must contain to be of a format known here.
const KEYS: [&[u8]; 39] = [
    b"memtype",
    b"ioremap",
    b"conflicting",
    b"Linux version",
    b"Reg ",
    b"variable range",
    b"MTRR",
    b"mtrr",
    b"reg",
    b"PAT",
    b"base",
    b"TOM2",
    b"usable",
    b"last_pfn",
    b"RAM",
    b"range:",
    b"range=",
    b"rdmsr",
    b"cpu",
    b"CPU",
    b"core",
    b"Core",
    b"ddress size",
    b"endor",
    b"flags",
    b"physical id",
    b"MSR",
    b"msr",
    b"size 0x",
    b"processor",
    b"write-",
    b"uncach",
    b"Hypervisor",
    b"AMD",
    b"Intel",
    b" Y ",
    b"PHYS",
    b"pair",
    b"SYSCFG",
];

/// Whether a line can matter: one cheap pass, for inputs of 100 MB.
fn may_matter(line: &[u8], starts: &[bool; 256]) -> bool {
    if line.trim_ascii_start().starts_with(b"0x") {
        return true;
    }
    let mut at = 0;
    while at < line.len() {
        if starts[usize::from(line[at])] {
            let rest = &line[at..];
            if KEYS.iter().any(|key| rest.starts_with(key)) {
                return true;
            }
        }
        at += 1;
    }
    false
}

impl Reader {
    /// Takes one line of the input.
    fn line(&mut self, bytes: &[u8], cut: bool) {
        self.dump.lines += 1;
        let waiting = self.pending.is_some() || self.unwrap.goes_on();
        let in_list = waiting || self.dump.lines <= self.list_until;
        if !in_list && !self.dump.first_line.is_empty() && !may_matter(bytes, &self.starts) {
            let text = bytes.iter().any(u8::is_ascii_alphanumeric);
            self.dump.records += u64::from(text);
            return;
        }
        if self.dump.first_line.is_empty() && !bytes.trim_ascii().is_empty() {
            let shown = plain(&String::from_utf8_lossy(bytes));
            if !shown.trim().is_empty() {
                self.dump.first_line = quoted(bytes.trim_ascii(), 60);
            }
        }
        let raw = String::from_utf8_lossy(bytes);
        for text in self.unwrap.lines(&raw) {
            self.record(&text, cut);
        }
    }

    /// Takes one line of the dump itself.
    fn record(&mut self, text: &str, cut: bool) {
        let text = plain(&text.replace('`', "_"));
        let cut = cut || text.len() > MAX_LINE;
        let end = (0..=MAX_LINE.min(text.len())).rfind(|at| text.is_char_boundary(*at));
        let line = Line::new(self.dump.lines, text.get(..end.unwrap_or(0)).unwrap_or(""));
        // Brackets and the like are no text.
        if line.atoms.is_empty() {
            return;
        }
        self.dump.records += 1;
        if read_proc::continues(self, &line) {
            return;
        }
        let understood = read_example::line(self, &line)
            || read_windbg::line(self, &line)
            || read_pat::line(self, &line)
            || read_map::line(self, &line)
            || read_msr::line(self, &line)
            || read_proc::line(self, &line)
            || read_kernel::line(self, &line)
            || read_cleanup::line(self, &line)
            || read_linuxbios::line(self, &line)
            || read_firmware::line(self, &line);
        if understood {
            self.dump.understood += 1;
            self.list_until = self.dump.lines + LIST_GAP;
            if cut {
                self.dump.complain(
                    line.number,
                    "longer than 4096 bytes: only its start was read",
                );
            }
        }
    }

    /// Opens a new table for `cpu` when `index` does not come after the one before.
    pub fn table_entry(&mut self, cpu: u32, index: u8) {
        self.dump.listing.last_record = self.dump.records;
        let last = self.last_index.insert(cpu, index);
        if last.is_none_or(|last| index <= last) {
            self.dump.tables += u32::from(cpu == 0);
            self.dump.cpu(cpu).variable.clear();
        }
    }

    /// Puts the /proc/mtrr block where it belongs, once the input has ended.
    fn finish(mut self) -> Dump {
        for text in self.unwrap.finish() {
            self.record(&text, false);
        }
        read_proc::continues(&mut self, &Line::new(0, ""));
        read_cleanup::finish(&mut self);
        self.positional.settle(&mut self.dump);
        let block = std::mem::take(&mut self.proc_mtrr);
        if !block.is_empty() {
            if self
                .dump
                .cpus
                .values()
                .any(|regs| !regs.variable.is_empty())
            {
                self.dump.proc_mtrr = Some(block);
            } else {
                self.dump.listing.used_only = true;
                self.dump.cpu(0).variable = block;
            }
        }
        self.dump
    }
}

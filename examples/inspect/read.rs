//! Reads any mixture of the formats people post, line by line, into one [`Dump`].
//!
//! Memory is bounded: one line of at most [`MAX_BYTES`], and what a [`Dump`] may hold.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use super::codes;
use super::dump::{Counted, Dump};
use super::kernel_map::KernelMap;
use super::keys::Keys;
use super::marks::{self, Marks};
use super::positional::Positional;
use super::quote::quoted;
use super::read_columns::Columns;
use super::read_rdmsr::Asked;
use super::read_said::{self, Unfinished};
use super::regs::Variable;
use super::repeats::Repeats;
use super::states::{self, Kept};
use super::unwrap::Unwrap;
use super::words::{Line, plain};
use super::{read_cleanup, read_example, read_firmware, read_kernel, read_msr, read_proc};
use super::{read_columns, read_linuxbios, read_map, read_pat, read_rdmsr, read_windbg};

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
    /// After an `rdmsr` command.
    Rdmsr,
}

/// The state between lines.
#[derive(Debug, Default)]
pub struct Reader {
    /// What was read so far.
    pub dump: Dump,
    /// The block we are in.
    pub section: Section,
    /// What `rdmsr` was asked for, and what came.
    pub asked: Asked,
    /// The columns of a table of registers.
    pub columns: Option<Columns>,
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
    /// Where registers came from.
    pub marks: Marks,
    /// The lines so far.
    pub kept: Kept,
    /// The line before.
    repeats: Repeats,
    /// A /proc/mtrr line that a mail program may have broken: its number and text.
    pub pending: Option<(u64, String)>,
    /// What takes a line out of what it is wrapped in.
    unwrap: Unwrap,
    /// What follows "New variable MTRRs" is not what firmware left.
    pub rearranged: bool,
    /// A line of the kernel about mapped pages that goes on.
    pub pat_goes_on: Option<(u64, String)>,
    /// A line of the kernel's list that was cut.
    pub list_cut: Option<u64>,
    /// The kernel has read its registers: what it counts after that may be low memory only.
    pub registers_came: bool,
    /// /proc/iomem came as far as the devices below 4 GiB.
    pub iomem_passed: bool,
    /// A line of the kernel that may go on.
    pub unfinished: Option<Unfinished>,
    /// MiB of high memory that 32-bit Linux found.
    pub high_memory: u64,
    /// Up to this line, lines may belong to a list begun before.
    list_until: u64,
    /// What a line outside a list must contain.
    keys: Keys,
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
                return Ok(states::settle(reader));
            }
            Err(error) => return Err(error),
        };
        if got == 0 {
            return Ok(states::settle(reader));
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

impl Reader {
    /// Takes one line of the input.
    fn line(&mut self, bytes: &[u8], cut: bool) {
        self.dump.lines += 1;
        let waiting = self.pending.is_some()
            || self.pat_goes_on.is_some()
            || self.unwrap.goes_on()
            || read_said::may_go_on(self, bytes);
        let in_list = waiting || self.dump.records <= self.list_until;
        if !in_list && !self.dump.first_line.is_empty() && !self.keys.may_matter(bytes) {
            self.pass(&String::from_utf8_lossy(bytes), cut);
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

    /// Leaves out a line that cannot say anything where it is.
    fn pass(&mut self, text: &str, cut: bool) {
        self.dump.records += u64::from(text.bytes().any(|byte| byte.is_ascii_alphanumeric()));
        self.kept
            .push(self.dump.lines, self.dump.records, text, cut);
    }

    /// Takes one line of the dump itself once more, line `number` of the input.
    pub fn once_more(&mut self, number: u64, text: &str, cut: bool) {
        self.dump.lines = number;
        // In another order, the line before is not in reach.
        let in_list = self.pending.is_some() || self.dump.records <= self.list_until;
        if in_list || self.keys.may_matter(text.as_bytes()) {
            self.record(text, cut);
        } else {
            self.pass(text, cut);
        }
    }

    /// Takes one line of the dump itself.
    fn record(&mut self, text: &str, cut: bool) {
        // `>reg00:`, as mail quotes; a word that is one stays.
        let text = match text.trim_start().starts_with('>') {
            true => text.trim_start_matches(|c: char| c == '>' || c.is_whitespace()),
            false => text,
        };
        let text = plain(&text.replace('`', "_"));
        for text in codes::split(&text) {
            self.text(text, cut || text.len() > MAX_LINE);
        }
    }

    /// Takes one line of text.
    fn text(&mut self, text: &str, cut: bool) {
        let end = (0..=MAX_LINE.min(text.len())).rfind(|at| text.is_char_boundary(*at));
        let line = Line::new(self.dump.lines, text.get(..end.unwrap_or(0)).unwrap_or(""));
        // Brackets and the like are no text.
        if line.atoms.is_empty() {
            return;
        }
        if self.repeats.again(&line, self.section == Section::Rdmsr) {
            return;
        }
        self.dump.records += 1;
        self.kept
            .push(line.number, self.dump.records, line.text, cut);
        if read_proc::continues(self, &line) {
            return;
        }
        read_proc::iomem_ends(self, &line);
        let understood = codes::line(&mut self.dump, line.number, line.text)
            || read_example::line(self, &line)
            || read_windbg::line(self, &line)
            || read_pat::line(self, &line)
            || read_map::line(self, &line)
            || read_rdmsr::line(self, &line)
            || read_columns::line(self, &line)
            || read_msr::line(self, &line)
            || read_proc::line(self, &line)
            || read_kernel::line(self, &line)
            || read_cleanup::line(self, &line)
            || read_linuxbios::line(self, &line)
            || read_firmware::line(self, &line);
        if understood {
            self.dump.understood += 1;
            self.list_until = self.dump.records + LIST_GAP;
            if cut {
                self.dump.complain(
                    line.number,
                    "longer than 4096 bytes: only its start was read",
                );
            }
        }
    }

    /// Notes that the line being read gives a register of `cpu`; true when it came before.
    pub fn saw(&mut self, listing: marks::Listing, cpu: u32, rank: u32) -> bool {
        let again = self.marks.saw(listing, cpu, rank, self.dump.records);
        if again {
            // The list before was of the registers before.
            self.dump.kernel_map = KernelMap::default();
        }
        again
    }

    /// Notes that the kernel reads its registers now: what it counted before was all RAM.
    pub fn registers_come(&mut self) {
        if !self.registers_came && self.dump.ram_end.is_some() {
            self.dump.counted = Counted::All;
        }
        self.registers_came = true;
    }

    /// Opens a new table for `cpu` when the one before has entry `index`.
    pub fn table_entry(&mut self, cpu: u32, index: u8) {
        self.dump.listing.last_record = self.dump.records;
        let rank = marks::FIRST_RANGE + u32::from(index);
        let again = self.saw(marks::Listing::Table, cpu, rank);
        let own = &mut self.dump.cpu(cpu).variable;
        let first = own.is_empty();
        if again || own.contains_key(&index) {
            own.clear();
            self.dump.tables += u32::from(cpu == 0);
        } else {
            self.dump.tables += u32::from(cpu == 0 && first);
        }
    }

    /// Puts the /proc/mtrr block where it belongs, once the input has ended.
    pub fn finish(mut self) -> Dump {
        for text in self.unwrap.finish() {
            self.record(&text, false);
        }
        read_proc::continues(&mut self, &Line::new(0, ""));
        read_cleanup::finish(&mut self);
        read_pat::finish(&mut self);
        read_rdmsr::flush(&mut self);
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
        if !self.dump.kernel_map.entries.is_empty() {
            let map = std::mem::take(&mut self.dump.kernel_map);
            map.fill_fixed(self.dump.cpu(0));
            self.dump.kernel_map = map;
        }
        self.dump
    }
}

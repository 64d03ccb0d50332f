//! What an input says, before any assumption is made: the one structure all readers fill.

use std::collections::BTreeMap;

use mtrr_pat::memtype::PatType;
use mtrr_pat::regs::MAX_VARIABLE;

use super::codes::Codes;
use super::digits::Digits;
use super::kernel_map::KernelMap;
use super::machine::FOUR_GIB;
use super::page_types::PageTypes;
use super::quote::quoted;
use super::regs::{Regs, Variable};
use super::states::State;
use super::subject::Subject;
use super::system::System;

/// Most CPUs kept of one input.
pub const MAX_CPUS: usize = 4096;
/// Most RAM ranges kept of one input.
pub const MAX_RAM: usize = 4096;
/// Most complaints kept; the rest are counted.
pub const MAX_COMPLAINTS: usize = 20;

/// Most lines of a kernel kept.
pub const MAX_HINTS: usize = 40;

/// Something the kernel said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The line.
    pub line: u64,
    /// What it is about.
    pub subject: Subject,
    /// The kernel's words.
    pub text: String,
}

/// One range of the list a kernel prints as it re-arranges them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// First byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// The type byte.
    pub memtype: u8,
}

/// Who made the processor, as far as the input tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// Not said.
    #[default]
    Unknown,
    /// Intel, or a processor that follows Intel's combination table.
    Intel,
    /// AMD or Hygon.
    Amd,
}

/// What a kernel counted whose count is the end of RAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// All RAM, or that below 4 GiB.
    #[default]
    Either,
    /// All of it.
    All,
    /// What is below 4 GiB, and there is more above.
    Low,
}

/// The list of variable ranges, as an input gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its form names every range, also those that are off.
    pub every: bool,
    /// Its heading came before it: it begins with its first range.
    pub headed: bool,
    /// A debugger printed it.
    pub debugger: bool,
    /// Its form leaves out what is off.
    pub used_only: bool,
    /// Its form leaves open where it ends, whatever follows.
    pub open_ended: bool,
    /// How many lines had been read with its last one.
    pub last_record: u64,
    /// How many ranges it has, where it says so: with default WB and with default UC.
    pub lengths: Option<(u8, u8)>,
    /// Ranges whose line could not be read.
    pub broken: Vec<u8>,
}

/// Everything one input says.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    /// By CPU number (or APIC id in firmware logs); a dump that names no CPU is CPU 0.
    pub cpus: BTreeMap<u32, Regs>,
    /// Physical address bits the input states, and the words it used.
    pub stated_bits: Option<(u8, String)>,
    /// Whether that came from CPUID of the running machine.
    pub bits_from_cpuid: bool,
    /// The input sums CPUs up: what ranges they have is not in it.
    pub summary: bool,
    /// Digits of the masks in a kernel's table.
    pub digits: Digits,
    /// The log is of Linux 6.5 or later.
    pub new_linux: bool,
    /// The kernel said that a mask does not reach up to the width.
    pub incorrect_mask: bool,
    /// What the kernel itself worked out of its variable ranges ("reg 0, base: ..").
    pub listed: BTreeMap<u8, Listed>,
    /// The map of types a kernel made of the registers.
    pub kernel_map: KernelMap,
    /// How many variable ranges exist, in the words of a kernel.
    pub stated_count: Option<u8>,
    /// The list of variable ranges.
    pub listing: Listing,
    /// Lines of text that are not blank, as they are once unwrapped.
    pub records: u64,
    /// Usable RAM, half-open.
    pub ram: Vec<(u64, u64)>,
    /// The map of usable RAM is in the input to its end.
    pub ram_whole: bool,
    /// What the kernel turned from usable to reserved, half-open.
    pub given_up: Vec<(u64, u64)>,
    /// End of RAM from a page count (`last_pfn`), the highest of the input.
    pub ram_end: Option<u64>,
    /// What that count is known to be of.
    pub counted: Counted,
    /// The layout in /proc/mtrr, when a more exact table was in the input too.
    pub proc_mtrr: Option<BTreeMap<u8, Variable>>,
    /// How often each range of /proc/mtrr is in use, where that is more than once.
    pub usage: BTreeMap<u8, u32>,
    /// Words of a kernel's command line that are about memory types.
    pub options: Vec<String>,
    /// The PAT the kernel wrote over the firmware's.
    pub pat_after: Option<u64>,
    /// The input says the processor has no PAT.
    pub no_pat: bool,
    /// The input says it comes from a virtual machine, in these words.
    pub hypervisor: Option<String>,
    /// Which kernel wrote it.
    pub system: System,
    /// Who made the processor.
    pub vendor: Vendor,
    /// By CPU number: package and core.
    pub cores: BTreeMap<u32, (u32, u32)>,
    /// What the kernel that wrote the log had to say.
    pub hints: Vec<Hint>,
    /// What the kernel says of mapped pages.
    pub page_types: PageTypes,
    /// What the reader had to do otherwise than asked, in sentences.
    pub notes: Vec<String>,
    /// Lines that could not be read: line and why.
    pub complaints: Vec<(u64, String)>,
    /// Complaints beyond [`MAX_COMPLAINTS`].
    pub more_complaints: u64,
    /// How many tables of variable ranges the input holds; the last one counts.
    pub tables: u32,
    /// States before the last one, in the order of the input.
    pub earlier: Vec<State>,
    /// QR codes of this crate's kernel example, until they are put together.
    pub codes: Codes,
    /// Lines read.
    pub lines: u64,
    /// Lines that said something.
    pub understood: u64,
    /// First line that is not blank, as an error message quotes it.
    pub first_line: String,
}

impl Dump {
    /// The registers of CPU `number`, made on first use. Past [`MAX_CPUS`] CPU 0 takes them.
    pub fn cpu(&mut self, number: u32) -> &mut Regs {
        let number = if self.cpus.len() >= MAX_CPUS && !self.cpus.contains_key(&number) {
            0
        } else {
            number
        };
        self.cpus.entry(number).or_default()
    }

    /// The registers of CPU `number`, when the input showed any.
    pub fn cpu_if_any(&self, number: u32) -> Option<&Regs> {
        self.cpus.get(&number)
    }

    /// Notes a line that could not be read.
    pub fn complain(&mut self, line: u64, why: impl Into<String>) {
        if self.complaints.len() < MAX_COMPLAINTS {
            self.complaints.push((line, why.into()));
        } else {
            self.more_complaints += 1;
        }
    }

    /// Notes what the kernel itself said; most subjects have room, however often one comes.
    pub fn hint(&mut self, line: u64, subject: Subject, text: &str) {
        let of = self
            .hints
            .iter()
            .filter(|hint| hint.subject == subject)
            .count();
        if self.hints.len() >= MAX_COMPLAINTS && of > 0 || self.hints.len() >= MAX_HINTS {
            return;
        }
        let text = quoted(text.trim(), 160);
        if !self.hints.iter().any(|old| old.text == text) {
            self.hints.push(Hint {
                line,
                subject,
                text,
            });
        }
    }

    /// Adds usable RAM `start..end`.
    pub fn add_ram(&mut self, start: u64, end: u64) {
        if end > start && self.ram.len() < MAX_RAM {
            self.ram.push((start, end));
        }
    }

    /// Notes that the line of a variable range could not be read.
    pub fn broken_range(&mut self, index: u8) {
        self.listing.last_record = self.records;
        if usize::from(index) < MAX_VARIABLE && !self.listing.broken.contains(&index) {
            self.listing.broken.push(index);
        }
    }

    /// Whether the PAT that the kernel wrote has a write-combining slot.
    pub fn kernels_pat_combines(&self) -> bool {
        let combining = PatType::WriteCombining.raw();
        let slots = self.pat_after.map(u64::to_le_bytes);
        slots.is_some_and(|slots| slots.contains(&combining))
    }

    /// The sizes with which the command line asks for another arrangement of the ranges.
    pub fn clean_up_sizes(&self) -> Option<String> {
        let sized = |word: &&String| {
            word.starts_with("mtrr_gran_size=") || word.starts_with("mtrr_chunk_size=")
        };
        let sizes: Vec<&str> = self
            .options
            .iter()
            .filter(sized)
            .map(String::as_str)
            .collect();
        (!sizes.is_empty()).then(|| sizes.join(" "))
    }

    /// The end of RAM, from the RAM map or a page count.
    pub fn ram_top(&self) -> Option<u64> {
        self.ram.iter().map(|range| range.1).max().or(self.ram_end)
    }

    /// Whether RAM is known to end at `ram_end`, or known not to.
    pub fn is_all_ram(&self) -> Option<bool> {
        match (self.counted, self.ram_end) {
            (_, Some(end)) if end > FOUR_GIB => Some(true),
            (Counted::All, _) => Some(true),
            (Counted::Low, _) => Some(false),
            (Counted::Either, _) => None,
        }
    }

    /// Whether the input held anything this tool can use.
    pub fn is_empty(&self) -> bool {
        !self
            .cpus
            .values()
            .any(|regs| regs.has_mtrr() || regs.pat.is_some() || regs.syscfg.is_some())
            && self.pat_after.is_none()
            && self.proc_mtrr.is_none()
            && self.kernel_map.entries.is_empty()
            && !self.speaks()
    }

    /// Whether there is something to say of the input without a register in it.
    pub fn speaks(&self) -> bool {
        let counted = self.stated_count.is_some();
        !self.hints.is_empty() || !self.page_types.is_empty() || counted
    }
}

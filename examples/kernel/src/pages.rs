//! What the screen says of an account: a verdict, what the firmware did wrong, who had which registers, the map of memory types,
//! and the registers as QR codes.

use crate::account::{ASLEEP, AWAKE, Account};
use crate::codes;
use crate::percpu::MAX_CPUS;
use crate::racy::Racy;
use crate::screen::{
    self,
    draw::{Ink, Page},
};
use crate::wrap;
use core::fmt::Write;
use core::ops::Range;
use heapless::String;
use mtrr_pat::diagnose::{Context, Machine, Severity, diagnose};
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::snapshot::Snapshot;
use raw_cpuid::CpuId;

/// Text of all pages; what is longer is cut, and the last line says so.
const TEXT: usize = 24 * 1024;
/// Findings and runs of the map that are listed.
const MOST_LINES: usize = 100;

/// One part of the book, over as many pages as it takes.
struct Chapter {
    ink: Ink,
    headline: &'static str,
    text: Range<usize>,
}

/// The pages about one account.
pub struct Book {
    text: String<TEXT>,
    chapters: heapless::Vec<Chapter, 8>,
    codes: usize,
}

static BOOK: Racy<Book> = Racy::new(Book::EMPTY);

impl Book {
    const EMPTY: Self = Self {
        text: String::new(),
        chapters: heapless::Vec::new(),
        codes: 0,
    };

    /// Writes it. `restarted`: the account is of a run before a restart.
    pub fn about(account: &Account, ram: &[Range<u64>], restarted: bool) -> &'static mut Self {
        // SAFETY: only the boot CPU writes pages, one book at a time.
        let book = unsafe { &mut *BOOK.get() };
        *book = Self::EMPTY;
        let errors = book.findings(account, ram);
        book.overview(account, errors, restarted);
        book.chapter(Ink::Green, "CPUS", |add| cpus(account, add));
        book.chapter(Ink::Green, "MEMORY MAP", |add| map(account, add));
        codes::all(account, screen::code_capacity(), |_| book.codes += 1);
        book
    }

    pub fn len(&self) -> usize {
        let chapters = self.chapters.iter().map(|chapter| self.parts(chapter));
        chapters.sum::<usize>() + self.codes
    }

    fn parts(&self, chapter: &Chapter) -> usize {
        let (_, rows) = screen::room();
        self.text[chapter.text.clone()]
            .lines()
            .count()
            .div_ceil(rows)
            .max(1)
    }

    /// Shows page `n`; the foot says what a key does.
    pub fn show(&self, account: &Account, n: usize, foot: &str) {
        let mut line = String::<160>::new();
        let _ = write!(line, "Page {} of {}. {foot}", n + 1, self.len());
        let mut left = n;
        for chapter in &self.chapters {
            let parts = self.parts(chapter);
            if left < parts {
                let (_, rows) = screen::room();
                let text = skip_lines(&self.text[chapter.text.clone()], left * rows);
                let end = text.len() - skip_lines(text, rows).len();
                return screen::show(&Page {
                    ink: chapter.ink,
                    headline: chapter.headline,
                    text: &text[..end],
                    foot: &line,
                });
            }
            left -= parts;
        }
        let mut at = 0;
        codes::all(account, screen::code_capacity(), |content| {
            if at == left {
                show_code(content, at + 1, self.codes, &line);
            }
            at += 1;
        });
    }

    fn chapter(
        &mut self,
        ink: Ink,
        headline: &'static str,
        write: impl FnOnce(&mut dyn FnMut(core::fmt::Arguments)),
    ) {
        let start = self.text.len();
        let (columns, _) = screen::room();
        let mut cut = false;
        write(&mut |line| cut |= wrap::into(&mut self.text, columns, line).is_err());
        if cut {
            let keep = self.text.len().min(TEXT - 64);
            self.text.truncate(
                (0..=keep)
                    .rfind(|&at| self.text.is_char_boundary(at))
                    .unwrap_or(0),
            );
            let _ = self
                .text
                .push_str("\n(there is more, and no room for it)\n");
        }
        let text = start..self.text.len();
        // As many chapters as there is room for are written, and no more.
        let _ = self.chapters.push(Chapter {
            ink,
            headline,
            text,
        });
    }

    /// First, whatever was written before.
    fn overview(&mut self, account: &Account, errors: usize, restarted: bool) {
        let (ink, headline) = match (account.stage, account.wrong, account.round) {
            (ASLEEP | AWAKE, ..) => (Ink::Red, "LOST"),
            (_, 0, 0) if errors == 0 => (Ink::Green, "BOOT OK"),
            (_, 0, 0) => (Ink::Amber, "ODD FIRMWARE"),
            (_, 0, _) => (Ink::Green, "SLEEP OK"),
            (.., 0) => (Ink::Red, "BOOT BAD"),
            _ => (Ink::Red, "SLEEP BAD"),
        };
        self.chapter(ink, headline, |add| {
            overview(account, errors, restarted, add)
        });
        self.chapters.rotate_right(1);
    }

    /// What the firmware did wrong; how many of it are errors.
    fn findings(&mut self, account: &Account, ram: &[Range<u64>]) -> usize {
        let snapshots = snapshots(account);
        let hypervisor = CpuId::new()
            .get_feature_info()
            .is_some_and(|info| info.has_hypervisor());
        let context = Context {
            machine: if hypervisor {
                Machine::Hypervisor
            } else {
                Machine::BareMetal
            },
            ..Context::bare_metal().with_width(account.bits())
        };
        let context = if ram.is_empty() {
            context
        } else {
            context.with_ram(ram)
        };
        let (mut errors, mut count) = (0, 0);
        let mut ink = Ink::Green;
        self.chapter(Ink::Green, "FIRMWARE", |add| {
            add(format_args!("What the firmware left {}:", when(account)));
            diagnose(snapshots, &context, &mut |finding| {
                count += 1;
                let word = match finding.severity {
                    Severity::Error => "WRONG",
                    Severity::Warning => "odd",
                    Severity::Info => "note",
                };
                errors += usize::from(finding.severity == Severity::Error);
                if finding.severity != Severity::Info {
                    ink = Ink::Amber;
                }
                if count <= MOST_LINES {
                    add(format_args!("{word}: {finding}"));
                }
            });
            if count == 0 {
                add(format_args!("Nothing to complain about."));
            }
        });
        if let Some(chapter) = self.chapters.last_mut() {
            chapter.ink = ink;
        }
        errors
    }
}

/// `text` without its first lines.
fn skip_lines(text: &str, count: usize) -> &str {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    match count.checked_sub(1) {
        None => text,
        Some(last) => &text[ends.take(count).nth(last).unwrap_or(text.len())..],
    }
}

fn show_code(content: &str, n: usize, of: usize, foot: &str) {
    let mut text = String::<512>::new();
    let said = write!(
        text,
        "CODE {n} OF {of}\n\nThe registers,\nto be read with\na telephone.\n\nPaste the text of\nall codes into\n  cargo run\n  --example inspect\nor into a report.\n\n"
    );
    let foot = wrap::into(&mut text, 26, format_args!("{foot}"));
    debug_assert!(said.is_ok() && foot.is_ok());
    screen::show_code(content, &text);
}

fn when(account: &Account) -> &'static str {
    if account.round == 0 {
        "at boot"
    } else {
        "after the sleep"
    }
}

/// What the CPUs came with, the boot CPU first. Those of which it was not kept are left out.
fn snapshots(account: &Account) -> &'static [Snapshot] {
    static ALL: Racy<heapless::Vec<Snapshot, MAX_CPUS>> = Racy::new(heapless::Vec::new());
    // SAFETY: only the boot CPU writes pages, one book at a time.
    let all = unsafe { &mut *ALL.get() };
    all.clear();
    for n in 0..account.cpus() {
        if let Some(snapshot) = account.snapshot_before(n) {
            // There is room for all CPUs.
            let _ = all.push(snapshot);
        }
    }
    all
}

fn overview(
    account: &Account,
    errors: usize,
    restarted: bool,
    add: &mut dyn FnMut(core::fmt::Arguments),
) {
    let cpus = account.cpus();
    let name = CpuId::new().get_processor_brand_string();
    let name = name
        .as_ref()
        .map_or("a processor without a name", |name| name.as_str().trim());
    add(format_args!(
        "mtrr-pat {}: {cpus} CPUs, {name}",
        env!("CARGO_PKG_VERSION")
    ));
    add(format_args!(
        "{} address bits, {} variable ranges",
        account.bits().get(),
        account.now.pair_count()
    ));
    add(format_args!(""));
    if restarted {
        add(format_args!(
            "This is what was found before the machine restarted."
        ));
    }
    match account.stage {
        ASLEEP => {
            return add(format_args!(
                "The machine went to sleep and did not come back to this program: it had to be restarted by hand. Nothing is known of what the firmware did."
            ));
        }
        AWAKE => {
            return add(format_args!(
                "The machine woke up, and this program did not come to its end: it stopped, or had to be restarted by hand, while CPUs were started."
            ));
        }
        _ => {}
    }
    let (lost, losers) = (account.lost, account.losers);
    match (lost, account.round) {
        (0, _) => add(format_args!(
            "Every CPU came {} with the right memory types.",
            when(account)
        )),
        (_, 0) => add(format_args!(
            "At boot {lost} registers on {losers} CPUs were not as all CPUs must have them (this program's own PAT included)."
        )),
        _ => add(format_args!(
            "The sleep lost {lost} registers on {losers} CPUs: memory would have had wrong types there."
        )),
    }
    match account.wrong {
        0 => add(format_args!(
            "Now all of them are right, read again on each CPU: {}",
            account.now
        )),
        wrong => add(format_args!(
            "STILL WRONG: {wrong} registers or steps. That is a bug of this program: please report it."
        )),
    }
    if errors != 0 {
        add(format_args!(""));
        add(format_args!(
            "Faults of the firmware: {errors}, on the next page."
        ));
    }
}

fn cpus(account: &Account, add: &mut dyn FnMut(core::fmt::Arguments)) {
    add(format_args!(
        "As they came {}, and what was wrong with it:",
        when(account)
    ));
    for (registers, members) in account.states() {
        add(format_args!("CPU {members}: {registers}"));
        add(format_args!("  wrong: {}", registers.diff(&account.now)));
    }
    if account.others() != 0 {
        add(format_args!(
            "{} more CPUs, with more different states than are kept",
            account.others()
        ));
    }
    add(format_args!(""));
    add(format_args!("Since then, all: {}", account.now));
}

fn map(account: &Account, add: &mut dyn FnMut(core::fmt::Arguments)) {
    let now = account.snapshot(&account.now);
    let map = MtrrMap::new(&now);
    for run in map.runs().take(MOST_LINES) {
        add(format_args!("{run}"));
    }
    if map.runs().nth(MOST_LINES).is_some() {
        add(format_args!("and more"));
    }
}

//! What the screen says of an account: a verdict, what the firmware did wrong, who had which registers, the map of memory types,
//! and the registers as QR codes.

mod says;

use crate::account::{ASLEEP, AWAKE, Account};
use crate::codes;
use crate::racy::Racy;
use crate::regs::is_guest;
use crate::screen::{
    self,
    draw::{Ink, Page},
};
use crate::wrap;
use core::fmt::Write;
use core::ops::Range;
use heapless::String;
use mtrr_pat::diagnose::{Context, Machine, Severity, diagnose};

/// Text of all pages; what is longer is cut, and the last line says so.
const TEXT: usize = 24 * 1024;
/// Findings that are listed.
const MOST_FINDINGS: usize = 100;

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
        book.text.clear();
        book.chapters.clear();
        book.codes = 0;
        let errors = book.findings(account, ram);
        book.overview(account, errors, restarted);
        book.chapter(Ink::Green, "CPUS", |add| says::cpus(account, add));
        book.chapter(Ink::Green, "MEMORY MAP", |add| says::map(account, add));
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
            says::overview(account, errors, restarted, add)
        });
        self.chapters.rotate_right(1);
    }

    /// What the firmware did wrong; how many of it are errors.
    fn findings(&mut self, account: &Account, ram: &[Range<u64>]) -> usize {
        let snapshots = says::snapshots(account);
        let context = Context {
            machine: if is_guest() {
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
            add(format_args!(
                "What the firmware left {}:",
                says::when(account)
            ));
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
                if count <= MOST_FINDINGS {
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

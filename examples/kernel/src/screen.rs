//! The screen of a machine that has no serial port: the loader's picture, or VGA text.
//!
//! What is shown also goes to the serial port, each line behind a bar, so that a test can draw the same page again.

pub mod draw;

mod cells;
mod code;
mod pixels;

use crate::bootinfo::Display;
use crate::racy::Racy;
use crate::{caching, println};
use cells::Cells;
use draw::{Ink, Page, Surface};
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Slot;
use pixels::Pixels;

/// Where the VGA adapter has its text.
const VGA_TEXT: usize = 0xb8000;

enum Screen {
    None,
    Pixels(Pixels),
    Cells(Cells),
}

static SCREEN: Racy<Screen> = Racy::new(Screen::None);

fn get() -> &'static mut Screen {
    // SAFETY: only the boot CPU draws; a panic elsewhere may garble the picture, which is better than none.
    unsafe { &mut *SCREEN.get() }
}

/// Takes what the loader left, before anything can go wrong. Uncached, as the PAT has it in every layout: slot 2 is UC-.
pub fn open(display: Display) {
    *get() = match display {
        Display::Pixels(info) => {
            Pixels::map(info, Slot::LOW_HALF[2]).map_or(Screen::None, Screen::Pixels)
        }
        // SAFETY: the loader's word.
        Display::Text(at) => Screen::Cells(unsafe { Cells::new(at) }),
        // SAFETY: text is what a BIOS leaves; elsewhere nothing is at this address.
        Display::Unknown => Screen::Cells(unsafe { Cells::new(VGA_TEXT) }),
    };
}

/// Maps the picture write-combining, by the PAT: drawing is many times faster then. After `caching::boot`.
pub fn combine() {
    let Screen::Pixels(pixels) = get() else {
        return;
    };
    let pat = caching::target().ok().and_then(|target| target.pat);
    let Some(chosen) = pat.and_then(|pat| pat.choose(MemType::WriteCombining.into()).ok()) else {
        return;
    };
    if let Some(mapped) = Pixels::map(pixels.info(), chosen.slot) {
        *get() = Screen::Pixels(mapped);
    }
}

/// Whether what is drawn gets anywhere: after S3 an adapter may have lost its addresses.
pub fn answers() -> bool {
    match get() {
        Screen::None => false,
        Screen::Pixels(pixels) => pixels.answers(),
        Screen::Cells(cells) => cells.answers(),
    }
}

/// Columns and rows that a page has for its text.
pub fn room() -> (usize, usize) {
    let inside = |columns: usize, rows| (columns - 2, rows);
    match get() {
        Screen::None => (78, 20),
        Screen::Pixels(pixels) => inside(pixels.text_size().0, draw::rows(pixels)),
        Screen::Cells(cells) => inside(cells.text_size().0, draw::rows(cells)),
    }
}

/// Shows a page.
pub fn show(page: &Page<'_>) {
    println!("screen: {:?} {}", page.ink, page.headline);
    page.text.lines().for_each(|line| println!("| {line}"));
    match get() {
        Screen::None => {}
        Screen::Pixels(pixels) => draw::page(pixels, page),
        Screen::Cells(cells) => draw::page(cells, page),
    }
    println!("screen: foot {}", page.foot);
}

/// Characters of a code's content that the screen has points enough for.
pub fn code_capacity() -> usize {
    code::capacity(largest())
}

fn largest() -> u8 {
    match get() {
        Screen::Cells(_) => code::SMALL,
        _ => code::LARGE,
    }
}

/// Shows a QR code with this content, of digits, capital letters, spaces and `$%*+-./:`, and a text beside it.
pub fn show_code(content: &str, text: &str) {
    println!("screen: code {content}");
    text.lines().for_each(|line| println!("| {line}"));
    code::with(content, largest(), |modules, dark| match get() {
        Screen::None => {}
        Screen::Pixels(pixels) => {
            draw::code(pixels, modules, dark, text);
        }
        Screen::Cells(cells) => {
            draw::code(cells, modules, dark, text);
        }
    });
    println!("screen: foot");
}

/// For somebody who cannot see the serial port: why this kernel cannot go on. Nothing when no screen is open.
pub fn stopped(text: core::fmt::Arguments) {
    let mut buffer = heapless::String::<1024>::new();
    let _ = crate::wrap::into(&mut buffer, room().0, text);
    if !matches!(get(), Screen::None) {
        show(&Page {
            ink: Ink::Red,
            headline: "STOPPED",
            text: &buffer,
            foot: "The kernel cannot go on. A photograph of this page is a good report.",
        });
    }
}

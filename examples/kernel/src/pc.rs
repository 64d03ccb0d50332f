//! A run for somebody who sits before the machine: `screen` on the command line.
//!
//! Pages after the boot, what to expect of the sleep, signals after the wake for those whose screen stays dark, and a restart that
//! brings the picture back: the account of the sleep is kept in memory over it (`keep.rs`).

use crate::account::{ASLEEP, AWAKE, Account, DONE};
use crate::bootinfo::BootInfo;
use crate::firmware::Firmware;
use crate::keyboard::{self, Key};
use crate::options;
use crate::pages::Book;
use crate::racy::Racy;
use crate::rounds::{BootCpu, Verdict};
use crate::screen::{
    self,
    draw::{Ink, Page},
};
use crate::{beep, clock, exit, keep, println};

static ACCOUNT: Racy<Account> = Racy::new(Account::EMPTY);

fn account() -> &'static mut Account {
    // SAFETY: only the boot CPU asks, and keeps it for one call.
    unsafe { &mut *ACCOUNT.get() }
}

/// How long a page stays when nobody presses a key.
fn page_us() -> u64 {
    u64::from(options::get().page_seconds) * 1_000_000
}

/// First of all: a run before a restart may have left its account. Shows it, and returns when a key asks for another run.
pub fn before(info: &BootInfo) {
    if let Some(kept) = keep::open(&info.ram) {
        println!(
            "kept: an account of round {}, stage {}",
            kept.round, kept.stage
        );
        let book = Book::about(kept, &info.ram, true);
        let key = browse(book, kept, Until::Key, "Any key: next. Esc: run once more.");
        println!("kept: shown, {key:?}");
    }
}

/// Notes what the CPUs came with, before their map changes.
pub fn note(round: u32, boot: &BootCpu) {
    account().take(round, boot);
}

/// The boot is done: pages, then what will happen.
pub fn after_boot(verdict: &Verdict, info: &BootInfo, firmware: &Firmware) {
    account().stage = DONE;
    account().wrong = verdict.differ as u32;
    if options::get().rounds == 0 || firmware.s3.is_none() {
        return;
    }
    let book = Book::about(account(), &info.ram, false);
    browse(book, account(), Until::End, "Any key: next.");
    screen::show(&Page {
        ink: Ink::Amber,
        headline: "SLEEP NEXT",
        text: WHAT_TO_EXPECT,
        foot: "Any key: sleep now. Nothing on this machine's disks is touched.",
    });
    wait(2 * page_us());
}

const WHAT_TO_EXPECT: &str = "\
The machine will sleep (ACPI S3) and wake by its clock after a few seconds.

The screen will most likely STAY DARK: that is no fault. Listen, and look at
the lights of the keyboard:
  one long tone, lights on         all memory types are right again
  three short tones, lights blink  something is wrong
Then, after half a minute without a key, the machine restarts. Let it boot
from this stick again: it shows what it found.

Nothing at all for two minutes, and the lamp of the machine still blinks:
it did not wake. Press its power button briefly; if that does not help, hold
it until it is off, and report that it sleeps and does not wake.
";

/// Just before the machine sleeps, and just after it woke: what is to be found if it goes no further.
pub fn asleep(round: u32) {
    (account().stage, account().round) = (ASLEEP, round);
    keep::store(account());
}

pub fn awake() {
    account().stage = AWAKE;
    keep::store(account());
}

/// The last sleep is over: keeps the account, signals, shows what can be shown, restarts.
pub fn after_sleep(verdict: &Verdict, info: &BootInfo, firmware: &Firmware) -> ! {
    account().stage = DONE;
    account().wrong = verdict.differ as u32;
    keep::store(account());
    let answers = screen::answers();
    println!(
        "awake: the screen's memory {}",
        if answers { "answers" } else { "is gone" }
    );
    let book = Book::about(account(), &info.ram, false);
    signal(verdict.differ == 0);
    if answers {
        screen::combine();
        browse(
            book,
            account(),
            Until::Silence,
            "Any key: next. No key: restart.",
        );
    } else {
        while wait(2 * page_us()).is_some() {}
    }
    println!("awake: restarting");
    exit::restart(firmware.reset)
}

/// One long tone and all lights, or three short ones and blinking lights.
fn signal(good: bool) {
    println!("signal: {}", if good { "one long" } else { "three short" });
    if good {
        keyboard::lights(7);
        return beep::beep(1_000_000);
    }
    for _ in 0..3 {
        keyboard::lights(7);
        beep::beep(150_000);
        keyboard::lights(0);
        clock::delay(150_000);
    }
}

/// The end of a run that does not restart: pages until Escape.
pub fn at_the_end(info: &BootInfo, firmware: &Firmware) {
    let foot = if firmware.s3.is_none() {
        "No sleep: this firmware offers no S3. Any key: next. Esc: end."
    } else {
        "Any key: next. Esc: end."
    };
    let book = Book::about(account(), &info.ram, false);
    browse(book, account(), Until::Key, foot);
    screen::show(&Page {
        ink: Ink::Green,
        headline: "THE END",
        text: "Switch the machine off.",
        foot: "",
    });
}

/// What ends a look at the pages, apart from Escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The last page.
    End,
    /// Twice a page's time without a key.
    Silence,
    /// Nothing: Escape alone.
    Key,
}

/// Shows page after page: the next one with a key, or by itself as long as nobody has pressed one.
fn browse(book: &Book, account: &Account, until: Until, foot: &str) -> Option<Key> {
    let (mut page, mut touched) = (0, false);
    loop {
        book.show(account, page, foot);
        let key = match until {
            Until::Silence => wait(2 * page_us()),
            // By itself, for those without a keyboard.
            _ => loop {
                let key = wait(page_us());
                if key.is_some() || !touched {
                    break key;
                }
            },
        };
        touched |= key.is_some();
        match key {
            Some(Key::Escape) => return key,
            Some(Key::Back) => page = page.saturating_sub(1),
            None if until == Until::Silence => return None,
            _ if page + 1 < book.len() => page += 1,
            _ if until == Until::End => return key,
            _ => page = 0,
        }
    }
}

/// Waits for a key, at most so long.
fn wait(us: u64) -> Option<Key> {
    let mut key = None;
    clock::wait_until(us, || {
        key = keyboard::pressed();
        key.is_some()
    });
    key
}

//! From the boot over a sleep and a restart, on each kind of screen.

use super::draw::Ink;
use super::inspect;
use super::picture::{Picture, decode};
use super::shown::Shown;
use super::vm;
use super::watched::Watched;
use embedded_graphics::prelude::{OriginDimensions, Size};

/// What `inspect` answers to this text.
fn inspected(text: &str) -> serde_json::Value {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let mut stdin = inspect::input::Stdin {
        text: &mut text.as_bytes(),
        terminal: false,
    };
    let words = ["inspect", "--json"].map(Into::into);
    inspect::run(words, &mut stdin, &mut out, &mut errors);
    serde_json::from_slice(&out)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&errors)))
}

/// Text and codes of a screen.
trait Screen {
    /// Checks that the screen shows this page, and gives the content of its code, if it is one.
    fn check(&self, machine: &mut Watched, page: &Shown) -> Option<String>;
}

struct OnPicture;

impl Screen for OnPicture {
    fn check(&self, machine: &mut Watched, page: &Shown) -> Option<String> {
        // The emulator may be behind with the picture: the last line reaches the log first.
        let mut picture = machine.picture();
        let Some(wanted) = page.drawn(picture.size()) else {
            return Some(picture.code());
        };
        for _ in 0..20 {
            if picture == wanted {
                return None;
            }
            picture = machine.picture();
        }
        let differ = picture.differences(&wanted);
        panic!(
            "{} points differ, {:?} first: {page:?}",
            differ.len(),
            differ.first()
        )
    }
}

struct OnText;

const VGA_TEXT: u64 = 0xb8000;
const COLUMNS: usize = 80;
const UPPER_HALF: u8 = 0xdf;

impl Screen for OnText {
    fn check(&self, machine: &mut Watched, page: &Shown) -> Option<String> {
        let cells = machine.memory(VGA_TEXT, 80 * 25 * 2);
        let colour = |x: u32, y: u32| {
            let at = (y as usize / 2 * COLUMNS + x as usize) * 2;
            match (cells[at], y % 2) {
                (UPPER_HALF, 0) => cells[at + 1] & 0xf,
                _ => cells[at + 1] >> 4,
            }
        };
        let Shown::Page {
            ink, text, foot, ..
        } = page
        else {
            let code = decode(80, 50, |x, y| colour(x, y) == 7);
            return Some(code);
        };
        let rows: Vec<String> = cells
            .chunks(2 * COLUMNS)
            .map(|row| {
                row.iter()
                    .step_by(2)
                    .skip(1)
                    .map(|&byte| char::from(byte))
                    .collect()
            })
            .collect();
        for line in text
            .lines()
            .chain([foot.as_str()])
            .filter(|line| !line.is_empty())
        {
            assert!(
                rows.iter().any(|row| row.starts_with(line)),
                "{line:?} is not in {rows:#?}"
            );
        }
        // The band, left of the letters, and letters in it.
        let band = match ink {
            Ink::Green => 2,
            Ink::Amber => 6,
            _ => 4,
        };
        assert_eq!(colour(0, 0), band, "{page:?}");
        let letters = (0..80).flat_map(|x| (0..12).map(move |y| (x, y)));
        assert!(
            letters.filter(|&(x, y)| colour(x, y) != band).count() > 40,
            "{page:?}"
        );
        None
    }
}

/// Looks at every page of a book, from the one given on, with a key for each; gives all pages, and the codes as read off the screen.
fn read_book(
    screen: &dyn Screen,
    machine: &mut Watched,
    first: Shown,
) -> (Vec<Shown>, Vec<String>) {
    let mut pages = vec![first];
    let mut codes = Vec::new();
    loop {
        let page = pages.last().expect("one at least").clone();
        if let Some(code) = screen.check(machine, &page) {
            assert_eq!(
                page.code(),
                Some(code.as_str()),
                "what is read is what was drawn"
            );
            codes.push(code);
        }
        let foot = match &page {
            Shown::Page { foot, .. } => foot.clone(),
            Shown::Code { text, .. } => text.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let (_, numbers) = foot.rsplit_once("Page ").expect("a number of the page");
        let mut numbers = numbers.split([' ', '.']);
        let (n, of) = (numbers.next(), numbers.nth(1));
        if n == of {
            return (pages, codes);
        }
        machine.press("spc");
        pages.push(machine.next_page());
    }
}

/// Boots, sleeps, is restarted by the kernel, and shows what it found.
fn whole_life(screen: &dyn Screen, text: bool, more: &[String]) {
    if !vm::wanted() {
        return;
    }
    let mut machine = Watched::boot("screen page=2", text, more);
    let first = machine.next_page();
    assert_eq!(
        first.headline(),
        "ODD FIRMWARE",
        "INIT clears this emulator's MTRRs"
    );
    let (pages, boot_codes) = read_book(screen, &mut machine, first);
    for chapter in ["FIRMWARE", "CPUS", "MEMORY MAP", "(code)"] {
        assert!(
            pages.iter().any(|page| page.headline() == chapter),
            "{pages:?}"
        );
    }
    assert!(pages[0].text().contains("4 CPUs"), "{pages:?}");
    machine.press("spc");
    let next = machine.next_page();
    assert_eq!(next.headline(), "SLEEP NEXT");
    screen.check(&mut machine, &next);
    let lights = machine.lights().len();
    machine.press("spc");
    machine.wait_for("SUSPEND");
    machine.wait_for("WAKEUP");
    // The screen is dark. The lights say how it went, and the machine restarts.
    let kept = machine.next_page();
    assert_eq!(
        machine.lights()[lights..].first(),
        Some(&7),
        "all lights on"
    );
    assert!(
        machine.log().contains("signal: one long"),
        "{}",
        machine.log()
    );
    assert_eq!(
        (kept.headline(), kept.ink()),
        ("SLEEP OK", Some(Ink::Green))
    );
    assert!(
        kept.text().contains("before the machine restarted"),
        "{kept:?}"
    );
    let (_, wake_codes) = read_book(screen, &mut machine, kept);

    // What the telephone reads is what the machine had, in whatever order it is pasted.
    let mut all: Vec<&str> = boot_codes
        .iter()
        .chain(&wake_codes)
        .map(String::as_str)
        .collect();
    let answer = inspected(&all.join("\n"));
    all.reverse();
    let backwards = inspected(&all.join(" "));
    for key in ["registers", "map", "verdict", "changes"] {
        assert!(!answer[key].is_null(), "{key} in {answer}");
    }
    assert_eq!(answer["map"], backwards["map"]);
    assert_eq!(answer["registers"], backwards["registers"]);
    let set = &answer["changes"][0]["memory"][0];
    assert_eq!(
        (&set["before"], &set["after"]),
        (&"WB".into(), &"WC".into()),
        "set by the kernel"
    );
    let lost = &answer["changes"][1]["memory"][0];
    assert_eq!(
        (&lost["before"], &lost["after"]),
        (&"WC".into(), &"WB".into()),
        "lost in the sleep"
    );
    // All parts are there, and one that is not is named. A text screen takes several for a state.
    let said = |codes: &[&str]| inspected(&codes.join("\n")).to_string();
    assert!(!said(&all).contains("not here"), "{all:?}");
    let part = wake_codes.iter().position(|code| code.contains(" 2/"));
    assert_eq!(part.is_some(), text, "{wake_codes:?}");
    if let Some(part) = part {
        let without: Vec<&str> = all
            .iter()
            .copied()
            .filter(|code| *code != wake_codes[part])
            .collect();
        assert!(said(&without).contains("not here: 2"), "{without:?}");
    }
}

#[test]
fn bios_with_a_picture() {
    whole_life(&OnPicture, false, &[]);
}

#[test]
fn bios_with_text() {
    whole_life(&OnText, true, &[]);
}

#[test]
fn uefi() {
    if !vm::wanted() {
        return;
    }
    let code = [
        "/usr/share/OVMF/OVMF_CODE_4M.fd",
        "/usr/share/OVMF/OVMF_CODE.fd",
    ];
    let Some(code) = code
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
    else {
        panic!("OVMF is not installed: ./tests/run.sh installs what is missing");
    };
    let flash = format!("if=pflash,format=raw,readonly=on,file={code}");
    let more = ["-machine", "q35", "-drive", &flash].map(String::from);
    whole_life(&OnPicture, false, &more);
}

/// A register that is wrong after the sleep: other signals, and another colour.
#[test]
fn a_wrong_register_after_the_sleep() {
    if !vm::wanted() {
        return;
    }
    let mut machine = Watched::boot("screen page=1 spoil=1", false, &[]);
    machine.next_page();
    machine.press("esc");
    while machine.next_page().headline() != "SLEEP NEXT" {}
    let lights = machine.lights().len();
    machine.press("spc");
    let kept = machine.next_page();
    assert!(machine.lights()[lights..].starts_with(&[7, 0, 7, 0, 7, 0]));
    assert!(machine.log().contains("signal: three short"));
    assert_eq!((kept.headline(), kept.ink()), ("SLEEP BAD", Some(Ink::Red)));
    assert!(kept.text().contains("STILL WRONG: 1"), "{kept:?}");
    OnPicture.check(&mut machine, &kept);
}

/// A machine that is reset after it woke, before the kernel came to its end.
#[test]
fn no_end_after_the_wake() {
    if !vm::wanted() {
        return;
    }
    // Many CPUs: all of them take a while to come up.
    let more = ["-smp", "48"].map(String::from);
    let mut machine = Watched::boot("screen page=1 quiet", false, &more);
    machine.next_page();
    machine.press("esc");
    while machine.next_page().headline() != "SLEEP NEXT" {}
    machine.press("spc");
    machine.wait_for_line("round 1: awake");
    machine.command("system_reset", serde_json::json!({}));
    let lost = machine.next_page();
    assert_eq!((lost.headline(), lost.ink()), ("LOST", Some(Ink::Red)));
    assert!(lost.text().contains("did not come to its end"), "{lost:?}");
    OnPicture.check(&mut machine, &lost);
}

/// Firmware without S3: the pages stay until Escape.
#[test]
fn no_sleep() {
    if !vm::wanted() {
        return;
    }
    let more = ["-global", "PIIX4_PM.disable_s3=1"].map(String::from);
    let mut machine = Watched::boot("screen page=1", false, &more);
    let first = machine.next_page();
    let Shown::Page { foot, .. } = &first else {
        panic!("{first:?}");
    };
    assert!(foot.contains("this firmware offers no S3"), "{foot}");
    machine.press("esc");
    while machine.next_page().headline() != "THE END" {}
    assert_eq!(machine.end(), Some(vm::SUCCESS));
}

/// A kernel that cannot go on says why on the screen.
#[test]
fn stopped() {
    if !vm::wanted() {
        return;
    }
    let mut machine = Watched::boot("rounds=many screen", false, &[]);
    let page = machine.next_page();
    assert_eq!((page.headline(), page.ink()), ("STOPPED", Some(Ink::Red)));
    assert!(page.text().contains("rounds=many"), "{page:?}");
    assert_eq!(machine.end(), Some(vm::FAILURE));
}

/// The comparison of pictures can fail.
#[test]
fn another_page_is_another_picture() {
    let size = Size::new(1024, 768);
    let page = |headline: &str| Shown::Page {
        ink: Ink::Green,
        headline: headline.into(),
        text: "text\n".into(),
        foot: String::new(),
    };
    let drawn = |headline| -> Picture { page(headline).drawn(size).expect("a page") };
    assert!(drawn("SLEEP OK") == drawn("SLEEP OK"));
    assert!(drawn("SLEEP OK").differences(&drawn("SLEEP 0K")).len() > 100);
}

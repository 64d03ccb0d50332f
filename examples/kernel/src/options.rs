//! The kernel's own words on the command line. The crate reads the same line and ignores these, as this ignores the crate's.

use crate::racy::Racy;
use mtrr_pat::policy::Resync;

/// What the kernel does to an AP's registers before the AP's sync, on top of what the firmware did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scribble {
    /// Nothing: the firmware's state stands.
    None,
    /// The saved state, exactly.
    Sync,
    /// The saved state with the MTRRs off.
    Off,
    /// All MTRRs zero.
    Zero,
    /// The saved state with one more variable range.
    Range,
    /// The saved state with the power-on PAT.
    Pat,
    /// One more range on CPUs with an odd number, the saved state on the others.
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody outside wakes the machine: QEMU's monitor, a power button.
    Outside,
    /// The real-time clock, two seconds later.
    Rtc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trampoline {
    /// CD=1, NW=0 until the CPU's sync: nothing is cached under a wrong type.
    NoFill,
    /// CD=NW=1, as INIT leaves them: what a trampoline gets that only turns on protection and paging.
    Naive,
}

/// In which order the APs are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The crate's: first threads of all cores first.
    Threads,
    /// As the ACPI tables list them.
    Listed,
}

/// How the APs are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// One after the other: the next when the last is online.
    Single,
    /// All are declared, then all are started, and each comes up by itself.
    Parallel,
}

/// What an AP does to a sibling that has to stand still for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Interrupts it.
    Kick,
    /// Nothing: a sibling that does not look by itself does not notice, and the AP has to wait for the rendezvous.
    Silent,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub resync: Resync,
    pub scribble: Scribble,
    pub wake: Wake,
    pub trampoline: Trampoline,
    pub order: Order,
    pub start: Start,
    pub hold: Hold,
    /// Sleeps in this boot.
    pub rounds: u32,
    /// CPUs to use at most.
    pub cpus: usize,
    /// A line per CPU and round, or only the counts.
    pub quiet: bool,
    /// In each round, gives the frame buffer a write-combining range, and takes it back.
    pub framebuffer: bool,
    /// At boot, touches memory of every type for an emulator that tells what it sees.
    pub oracle: bool,
    /// At boot, measures what a writer to the frame buffer does to its neighbours.
    pub neighbour: bool,
    /// In this round the boot CPU spoils its own PAT once all are in line: whoever compares must notice.
    pub spoil: Option<u32>,
    /// Shows on the screen what is found, and restarts after the sleep.
    pub screen: bool,
    /// Seconds that a page stays when nobody presses a key.
    pub page_seconds: u32,
}

static OPTIONS: Racy<Options> = Racy::new(Options::DEFAULT);

/// The options of this boot. APs read them too: they are written before the first one starts.
pub fn get() -> Options {
    // SAFETY: written only by `set`.
    unsafe { *OPTIONS.get() }
}

/// # Safety
/// Before any AP runs.
pub unsafe fn set(options: Options) {
    // SAFETY: as the caller says.
    unsafe { *OPTIONS.get() = options };
}

impl Options {
    const DEFAULT: Self = Self {
        resync: Resync::Early,
        scribble: Scribble::None,
        wake: Wake::Outside,
        trampoline: Trampoline::NoFill,
        order: Order::Threads,
        start: Start::Single,
        hold: Hold::Kick,
        rounds: 1,
        cpus: usize::MAX,
        quiet: false,
        framebuffer: false,
        oracle: false,
        neighbour: false,
        spoil: None,
        screen: false,
        page_seconds: 15,
    };

    /// Whether there is somebody to show a mistake in the rest of the line to.
    pub fn wants_screen(line: &str) -> bool {
        line.split_ascii_whitespace().any(|word| word == "screen")
    }

    /// Reads a command line; a value it does not know is an error that names the word.
    pub fn parse(line: &str) -> Result<Self, &str> {
        let mut options = Self::DEFAULT;
        for word in line.split_ascii_whitespace() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("resync", "early") => options.resync = Resync::Early,
                ("resync", "deferred") => options.resync = Resync::Deferred,
                ("scribble", "none") => options.scribble = Scribble::None,
                ("scribble", "sync") => options.scribble = Scribble::Sync,
                ("scribble", "off") => options.scribble = Scribble::Off,
                ("scribble", "zero") => options.scribble = Scribble::Zero,
                ("scribble", "range") => options.scribble = Scribble::Range,
                ("scribble", "pat") => options.scribble = Scribble::Pat,
                ("scribble", "some") => options.scribble = Scribble::Some,
                ("wake", "outside") => options.wake = Wake::Outside,
                ("wake", "rtc") => options.wake = Wake::Rtc,
                ("trampoline", "nofill") => options.trampoline = Trampoline::NoFill,
                ("trampoline", "naive") => options.trampoline = Trampoline::Naive,
                ("order", "threads") => options.order = Order::Threads,
                ("order", "listed") => options.order = Order::Listed,
                ("start", "single") => options.start = Start::Single,
                ("start", "parallel") => options.start = Start::Parallel,
                ("hold", "kick") => options.hold = Hold::Kick,
                ("hold", "silent") => options.hold = Hold::Silent,
                ("rounds", count) => options.rounds = count.parse().map_err(|_| word)?,
                ("cpus", count) => options.cpus = count.parse().map_err(|_| word)?,
                ("quiet", "") => options.quiet = true,
                ("wc", "framebuffer") => options.framebuffer = true,
                ("oracle", "types") => options.oracle = true,
                ("workload", "wc-neighbour") => options.neighbour = true,
                ("spoil", round) => options.spoil = Some(round.parse().map_err(|_| word)?),
                ("screen", "") => options.screen = true,
                ("page", seconds) => options.page_seconds = seconds.parse().map_err(|_| word)?,
                ("wc" | "oracle" | "workload", _) => return Err(word),
                ("resync" | "scribble" | "wake" | "trampoline" | "order" | "hold", _) => {
                    return Err(word);
                }
                _ => {}
            }
        }
        Ok(options)
    }
}

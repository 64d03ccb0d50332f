//! One round of a machine's life: the APs come up, everything is compared, the map changes, everything is compared again; and the
//! sleep between two rounds. Counts what is wrong.

use crate::caching::{self, BOOT};
use crate::firmware::Firmware;
use crate::framebuffer::Area;
use crate::options::Start;
use crate::percpu::{self, MAX_CPUS, SLOTS};
use crate::regs::RegFile;
use crate::{apic, console, options, pic, println, sleep, smp, tables};
use mtrr_pat::error::Error;
use mtrr_pat::report::Outcome;

/// What went wrong so far, in registers that differ and in things that failed; and the machine it is about.
#[derive(Default)]
pub struct Verdict {
    pub differ: usize,
    /// First byte above all RAM, or 0 when nobody says.
    pub ram_end: u64,
    /// Memory for write-combining, once it has been looked for.
    pub area: Option<Area>,
}

/// What the boot CPU came to a round with, and what the crate did about it.
pub struct BootCpu {
    pub before: RegFile,
    pub outcome: Option<Outcome>,
}

impl Verdict {
    pub fn failed(&mut self, what: core::fmt::Arguments) {
        println!("FAILED {what}");
        self.differ += 1;
    }

    pub fn expect<T>(&mut self, what: &str, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed(format_args!("{what}: {error}"));
                None
            }
        }
    }

    /// Starts every AP, and brings all of them in line.
    pub fn bring_up(&mut self, round: u32) {
        smp::install_trampoline();
        smp::stop_all();
        match options::get().start {
            Start::Single => caching::start_order(|n| self.bring_up_one(n)),
            Start::Parallel => self.bring_up_all(),
        }
        if let Some(Some(summary)) = self.expect("rendezvous", caching::meet_if_needed()) {
            println!("round {round}: {summary}");
        }
        let out = caching::report().out_of_sync().count();
        if out != 0 {
            self.failed(format_args!("{out} CPUs out of sync"));
        }
    }

    /// Declares all APs, starts all of them, and waits for all. One that does not come is stopped, and gone.
    fn bring_up_all(&mut self) {
        let mut declared = [false; MAX_CPUS];
        caching::start_order(|n| {
            declared[n] = self
                .expect("declaring an AP", caching::starting(n))
                .is_some();
        });
        let mut stuck = None;
        let mut poll = || stuck = caching::hold_point().err().or(stuck);
        smp::start_all(&declared, &mut poll);
        for n in (0..percpu::count()).filter(|&n| declared[n]) {
            if !smp::wait_online(n, &mut poll) {
                apic::send_init(n);
                self.failed(format_args!("CPU {n} does not come up"));
                self.expect("giving a CPU up", caching::gone(n));
            }
        }
        if let Some(error) = stuck {
            self.failed(format_args!("boot CPU, held while all come up: {error}"));
        }
    }

    fn bring_up_one(&mut self, n: usize) {
        if self
            .expect("declaring an AP", caching::starting(n))
            .is_none()
        {
            return;
        }
        let mut stuck = None;
        let mut poll = || stuck = caching::hold_point().err().or(stuck);
        let up = smp::start(n, &mut poll) && smp::wait_online(n, &mut poll);
        if !up {
            self.failed(format_args!("CPU {n} does not come up"));
        }
        if let Some(error) = stuck {
            self.failed(format_args!("boot CPU, held for CPU {n}: {error}"));
        }
    }

    /// Has every CPU read its registers, and compares them with what they have to be.
    ///
    /// With `boot` a line is printed for each.
    pub fn compare(&mut self, round: u32, boot: Option<&BootCpu>) {
        // SAFETY: the boot CPU's own.
        unsafe { (*SLOTS[BOOT].after.get()).read_into() };
        for n in 0..percpu::count() {
            if n == BOOT || smp::ask(n, smp::Request::Record) {
                self.compare_one(round, n, boot);
            } else {
                self.failed(format_args!("CPU {n} does not answer"));
            }
        }
    }

    fn compare_one(&mut self, round: u32, n: usize, boot: Option<&BootCpu>) {
        let slot = &SLOTS[n];
        // SAFETY: CPU `n` has answered, and writes none of these three before it is asked again.
        let ap_before = unsafe { &*slot.before.get() };
        // SAFETY: likewise.
        let after = unsafe { &*slot.after.get() };
        // SAFETY: likewise.
        let error = unsafe { (*slot.error.get()).take() };
        let differs = after.diff(caching::wanted());
        self.differ += differs.registers() + usize::from(after.caching_off());
        if let Some(error) = error {
            self.failed(format_args!("CPU {n}: {error}"));
        }
        if let Some(boot) = boot
            && !options::get().quiet
        {
            let before = if n == BOOT { &boot.before } else { ap_before };
            print_line(round, n, boot, before, after);
        }
        if differs.registers() != 0 {
            println!("round {round} cpu {n} DIFFERS in {differs}");
        }
    }

    /// Gives the running machine another map.
    pub fn change(&mut self, round: u32) {
        if let Some(summary) = self.expect("change", caching::change(round)) {
            println!(
                "round {round}: map changed on {} CPUs, {} out of sync, now {}",
                summary.cpus,
                summary.out_of_sync,
                caching::wanted()
            );
            self.differ += summary.out_of_sync as usize;
        }
        self.compare(round, None);
    }

    /// Parks the APs, sleeps in S3, wakes, and gives the boot CPU its state back. Returns how it woke.
    pub fn sleep(&mut self, round: u32, firmware: &Firmware) -> BootCpu {
        for n in 1..percpu::count() {
            if !smp::ask(n, smp::Request::Park) {
                self.failed(format_args!("CPU {n} does not park"));
            }
            self.expect("parking", caching::parked(n));
        }
        if let Some(saved) = self.expect("suspend", caching::suspend())
            && !saved.changes.is_empty()
        {
            self.failed(format_args!(
                "the boot CPU's registers moved behind the crate's back: {}",
                saved.changes
            ));
        }
        let wake = options::get().wake;
        if !sleep::suspend(firmware, wake) {
            panic!("the machine does not sleep");
        }
        let before = RegFile::read();
        let outcome = self.expect("resume", caching::resume());
        tables::load(BOOT);
        percpu::adopt(BOOT);
        console::init();
        pic::mask_all();
        apic::enable();
        sleep::acknowledge_wake(firmware, wake);
        println!("round {round}: awake");
        BootCpu { before, outcome }
    }
}

/// State before, what was done, state after.
fn print_line(round: u32, n: usize, boot: &BootCpu, before: &RegFile, after: &RegFile) {
    crate::print!("round {round} cpu {n} apic {}", percpu::apic_id(n));
    if let Some((core, thread)) = caching::place(n) {
        crate::print!(" core {core} thread {thread}");
    }
    crate::print!(
        " | before {before} differs={} | ",
        before.diff(caching::wanted())
    );
    let line = caching::report_of(n);
    // A rendezvous may have looked at the boot CPU again since, and found it in line.
    let outcome = if n == BOOT {
        boot.outcome
    } else {
        line.and_then(|line| line.outcome)
    };
    match outcome {
        Some(outcome) => crate::print!(
            "path={} changed={} ticks={}",
            outcome.path,
            outcome.changes,
            outcome.ticks
        ),
        None => crate::print!("path=none"),
    }
    if let Some(line) = line {
        crate::print!(" windows={} holds={}", line.windows, line.holds);
    }
    println!(" | after {after} differs={}", after.diff(caching::wanted()));
}

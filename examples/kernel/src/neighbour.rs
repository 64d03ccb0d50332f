//! `workload=wc-neighbour`: one CPU streams stores to the frame buffer, mapped UC-, WC and WB in turn, while the others sweep memory of
//! their own; how much slower does each get?
//!
//! On some machines write-combining stores of one core take the path to memory from all the others: the victims then get several
//! times slower beside WC, not beside UC-, and not where their data fits their own cache. Emulators have no such path and show about 1.

use crate::framebuffer::{Area, planned};
use crate::percpu::MAX_CPUS;
use crate::racy::Racy;
use crate::rounds::Verdict;
use crate::smp::{self, Request};
use crate::sweep::{self, Work};
use crate::timings::Timings;
use crate::window::{self, LARGE_PAGE};
use crate::{caching, clock, println};
use core::arch::asm;
use core::ops::Range;
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::{MemType, PatType};
use mtrr_pat::reserve::{Request as Wish, Reservations};
use mtrr_pat::snapshot::Snapshot;

/// Most of the frame buffer that is written, in large pages.
const MOST_PAGES: usize = 4;
/// Length of one measurement.
const WINDOW_US: u64 = 100_000;
/// It goes on, within reason, until each victim has done so much.
const LEAST_PIECES: u32 = 1000;
const MOST_US: u64 = 5_000_000;
const TYPES: [PatType; 3] = [
    PatType::UncachedMinus,
    PatType::WriteCombining,
    PatType::WriteBack,
];

/// Median ticks of a piece of work: 4 KiB written; 16 KiB swept, the sum over all victims.
#[derive(Clone, Copy)]
struct Ticks {
    writer: u64,
    victims: u64,
}

/// The writer's times.
static WRITER: Racy<Timings> = Racy::new(Timings::EMPTY);

impl Verdict {
    /// Gives the frame buffer the MTRR type WB, so that the page tables alone decide, measures, and takes it back.
    pub fn neighbour(&mut self) {
        let Some(before) = self.expect("reading the target", caching::target()) else {
            return;
        };
        let area = self
            .area
            .get_or_insert_with(|| Area::find(before.phys_bits))
            .clone();
        let range = if area.adapter {
            println!("neighbour: {area}");
            area.range
        } else {
            println!(
                "neighbour: no display adapter: RAM in its place, which shows nothing of the way to a device"
            );
            sweep::spare()
        };
        let pages = ((range.end - range.start) / LARGE_PAGE).min(MOST_PAGES as u64);
        let range = range.start..range.start + pages * LARGE_PAGE;
        if pages == 0 {
            return self.failed(format_args!("neighbour: less than 2 MiB there"));
        }
        if !area.adapter || self.make_write_back(&before, &range) {
            self.measure_all(&range);
        }
        self.expect("the firmware's map again", caching::change_to(&before));
        println!("neighbour: done");
    }

    fn make_write_back(&mut self, before: &Snapshot, range: &Range<u64>) -> bool {
        match planned(before, range, MemType::WriteBack, self.ram_end) {
            Ok(Some(planned)) => self
                .expect(
                    "write-back for the frame buffer",
                    caching::change_to(&planned.target),
                )
                .is_some(),
            Ok(None) => {
                self.failed(format_args!("neighbour: no plan"));
                false
            }
            Err(error) => {
                self.failed(format_args!("neighbour: {error}"));
                false
            }
        }
    }

    fn measure_all(&mut self, range: &Range<u64>) {
        let Some(target) = self.expect("reading the target", caching::target()) else {
            return;
        };
        let victims = sweep::victims();
        println!(
            "neighbour: 1 writer of {} KiB, {victims} victims, {} us each; slowdown 1.00 is none, and all that an emulator can show",
            (range.end - range.start) >> 10,
            WINDOW_US
        );
        let alone = [Work::Large, Work::Small].map(|work| self.measure(None, work).victims);
        let map = MtrrMap::new(&target);
        let mut table = Reservations::<1>::new(caching::write_combining());
        for wanted in TYPES {
            let wish = Wish::new(range.clone(), wanted);
            let grant = match table.reserve(&wish, &map, caching::rule()) {
                Ok(grant) => grant,
                Err(error) => return self.failed(format_args!("neighbour: {error}")),
            };
            println!("neighbour: {}: {grant}", wanted.short());
            let Some(pat) = target.pat.and_then(|pat| pat.choose(grant.memtype).ok()) else {
                return self.failed(format_args!(
                    "neighbour: no PAT slot for {}",
                    wanted.short()
                ));
            };
            let at = map_range(range, pat.slot);
            let bytes = (range.end - range.start) as usize;
            let writer = self.measure(Some((at, bytes)), Work::Spin).writer;
            for (work, alone) in [Work::Large, Work::Small].into_iter().zip(alone) {
                let beside = self.measure(Some((at, bytes)), work);
                println!(
                    "neighbour: {} in slot of {}, victims sweep {work}: writer {} ticks for 4 KiB, slowdown {}; victims slowdown {}",
                    wanted.short(),
                    pat.granted.short(),
                    beside.writer,
                    Ratio(beside.writer, writer),
                    Ratio(beside.victims, alone),
                );
            }
            unmap();
            if let Err(error) = table.release(range.clone()) {
                return self.failed(format_args!("neighbour: {error}"));
            }
        }
    }

    /// All victims at `work`, the writer beside them; without one it keeps busy with nothing.
    fn measure(&mut self, target: Option<(*mut u64, usize)>, work: Work) -> Ticks {
        let count = sweep::victims();
        sweep::prepare(work);
        let mut numbers = [0; MAX_CPUS];
        for (n, number) in numbers.iter_mut().enumerate().take(count + 1).skip(1) {
            *number = smp::post(n, Request::Sweep);
        }
        let all_have_done = |pieces| (1..=count).all(|n| sweep::has_done(n, pieces));
        let ready = clock::wait_until(20_000_000, || all_have_done(0));
        // SAFETY: the boot CPU's own.
        let timings = unsafe { &mut *WRITER.get() };
        *timings = Timings::EMPTY;
        let start = clock::now();
        sweep::go();
        let (mut written, mut last) = (0, start);
        let mut us = WINDOW_US;
        while last.wrapping_sub(start) < clock::ticks(us) {
            written += target.map_or_else(sweep::spin, |(at, bytes)| stream(at, bytes, written));
            let now = clock::now();
            timings.add(now.wrapping_sub(last));
            last = now;
            // A CPU of a busy host's emulator may not even have run yet.
            let late = last.wrapping_sub(start) >= clock::ticks(us) && us < MOST_US;
            if late && !all_have_done(LEAST_PIECES) {
                us += WINDOW_US;
            }
        }
        sweep::stop();
        let all = (1..=count)
            .filter(|&n| smp::answered(n, numbers[n]))
            .count();
        if !ready || all != count {
            self.failed(format_args!("neighbour: {all} of {count} victims answer"));
        }
        Ticks {
            writer: timings.median(),
            victims: (1..=count).map(sweep::median).sum(),
        }
    }
}

/// Fills the next 4 KiB; returns how many bytes that were.
fn stream(at: *mut u64, bytes: usize, written: u64) -> u64 {
    const STEP: usize = 4096;
    let words = STEP / size_of::<u64>();
    let offset = written as usize % bytes;
    let from = at.wrapping_byte_add(offset);
    for n in 0..words {
        // SAFETY: inside the mapping, whose size is a multiple of the step: memory that holds a picture, or spare RAM.
        unsafe { from.wrapping_add(n).write_volatile(written) };
    }
    STEP as u64
}

/// Maps the range at the first places; no other mapping of it is in use.
fn map_range(range: &Range<u64>, slot: mtrr_pat::pat::Slot) -> *mut u64 {
    let mut first = core::ptr::null_mut();
    for (n, phys) in range.clone().step_by(LARGE_PAGE as usize).enumerate() {
        let at = window::map_large(n, phys, slot);
        if n == 0 {
            first = at;
        }
    }
    first
}

/// Before the same memory gets another type, nothing of it may be left in a cache or in a TLB entry.
fn unmap() {
    window::unmap_large(MOST_PAGES);
    // SAFETY: WBINVD changes no memory contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// A quotient with two decimals.
struct Ratio(u64, u64);

impl core::fmt::Display for Ratio {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self.0 * 100).checked_div(self.1) {
            Some(hundredths) if self.0 != 0 => {
                write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
            }
            _ => f.write_str("unknown"),
        }
    }
}

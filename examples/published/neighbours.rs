//! A core that streams stores to a frame buffer, and the others, which sweep memory meanwhile.
//!
//! The mapping's type is what the reservation table grants under the kernel's policy, so `nowc` on
//! its command line reaches the simulated stores.

use std::sync::atomic::{AtomicU32, Ordering};

use mtrr_pat::combine::CombineRule;
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::PatType;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Policy;
use mtrr_pat::reserve::{Request, Reservations};
use mtrr_pat::sim::{Config, Machine, Mapping};

const CORES: usize = 4;
const FRAME_BUFFER: u64 = 0xd000_0000;
const FRAME_BUFFER_SIZE: u64 = 0x100_0000;
const PIECE: u64 = 4096;
/// When the victims begin, in picoseconds.
const BEGIN: u64 = 1_000_000_000;

/// The buffers the victims sweep: one larger than the first-level cache, one that fits.
pub const LARGE: u64 = 128 << 10;
pub const SMALL: u64 = 16 << 10;

/// The PAT slot a frame buffer is mapped with, under this command line.
pub fn granted(wanted: PatType, command_line: &str) -> PatType {
    let policy = Policy::DEFAULT.with_command_line(command_line);
    let write_combining = policy.expect("a command line").write_combining;
    let map = MtrrMap::new(&Config::new(1, 1).boot);
    let mut table = Reservations::<4>::new(write_combining);
    let range = FRAME_BUFFER..FRAME_BUFFER + FRAME_BUFFER_SIZE;
    let grant = table.reserve(&Request::new(range, wanted), &map, CombineRule::Intel);
    grant.expect("an empty table").memtype
}

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Virtual microseconds until the last victim has swept its buffer.
    pub victims: f64,
    /// Megabytes per second the writer got rid of.
    pub writer: f64,
}

/// Sweeps a buffer on all cores but one, which writes to a mapping of this type, if any.
pub fn run(buffer: u64, mapped: Option<PatType>) -> Came {
    let mut config = Config::new(CORES, 1);
    config.log = false;
    config.boot.pat = Some(Pat::LINUX);
    config.aps.pat = Some(Pat::LINUX);
    let slot = mapped.and_then(|memtype| Pat::LINUX.find(memtype));
    config.mappings.push(Mapping {
        start: FRAME_BUFFER,
        end: FRAME_BUFFER + FRAME_BUFFER_SIZE,
        slot: slot.map_or(0, |slot| slot.index()),
        global: false,
    });
    let machine = Machine::new(config);
    let (done, written) = (AtomicU32::new(0), AtomicU32::new(0));
    let victims = CORES as u32 - 1;
    machine.run(
        |boot| {
            (1..CORES).for_each(|ap| boot.send_init_sipi(ap));
            while mapped.is_some() && done.load(Ordering::Acquire) < victims {
                boot.stream_stores(FRAME_BUFFER, PIECE);
                written.fetch_add(1, Ordering::Relaxed);
            }
        },
        |ap| {
            ap.wait_until(BEGIN);
            ap.sweep(buffer);
            done.fetch_add(1, Ordering::Release);
        },
        |_| {},
    );
    let end = (1..CORES).map(|cpu| machine.time(cpu)).max().unwrap_or(0);
    let bytes = u64::from(written.load(Ordering::Relaxed)) * PIECE;
    Came {
        victims: (end - BEGIN) as f64 / 1e6,
        writer: bytes as f64 / (machine.time(0) as f64 / 1e6),
    }
}

/// Prints every type side by side.
pub fn report() {
    println!(
        "Write-combining neighbours: one core streams stores to a frame buffer, {} others sweep a buffer\n\
         larger than the first-level cache ({} KiB) or one that fits it ({} KiB). Published: about 10\n\
         times slower, and no slowdown for data that fits. (On a PC: examples/kernel.)\n",
        CORES - 1,
        LARGE >> 10,
        SMALL >> 10
    );
    println!(
        "  {:<26} {:<10} {:>12} {:>14} {:>14}",
        "wanted", "granted", "writer MB/s", "large, slower", "small, slower"
    );
    let alone = [LARGE, SMALL].map(|buffer| run(buffer, None).victims);
    for (wanted, command_line) in [
        (PatType::WriteCombining, ""),
        (PatType::WriteCombining, "nowc"),
        (PatType::UncachedMinus, ""),
    ] {
        let memtype = granted(wanted, command_line);
        let [large, small] = [LARGE, SMALL].map(|buffer| run(buffer, Some(memtype)));
        println!(
            "  {:<26} {:<10} {:>12.0} {:>12.2} x {:>12.2} x",
            format!("{} {command_line}", wanted.short()),
            memtype.short(),
            large.writer,
            large.victims / alone[0],
            small.victims / alone[1],
        );
    }
}

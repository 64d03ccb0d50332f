//! Virtual time.

use super::{life, nothing};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::pat::Pat;
use mtrr_pat::sim::{Activity, Config, Machine, Mapping, S3, Scribble, SimCpu};

#[test]
fn off_is_uncached_and_slow() {
    let time_of = |scribble| {
        let machine = Machine::new(Config::new(2, 1));
        machine.run(
            |boot| {
                boot.s3(&S3::aps(scribble).with_ap_cr0(0x10));
                let before = boot.machine().now();
                boot.send_init_sipi(1);
                before
            },
            |ap| ap.work(1_000_000),
            nothing,
        );
        (machine.counters(1).uncached_work, machine.time(1))
    };
    let (cached, fast) = time_of(Scribble::LikeBoot);
    let (uncached, slow) = time_of(Scribble::Off);
    assert_eq!((cached, uncached), (0, 1_000_000));
    assert!(slow > fast);
}

/// How long each of two CPUs takes for a WBINVD begun at the same time.
fn two_wbinvds(dirty: u64, cores_per_llc: usize, serialised: bool) -> [u64; 2] {
    let mut config = Config::new(2, 1);
    config.cores_per_llc = cores_per_llc;
    config.costs.wbinvd_serialised_per_llc = serialised;
    config.costs.dirty_per_1000 = 1000;
    config.costs.instructions_per_op = 0;
    let machine = Machine::new(config);
    let code = |cpu: &mut SimCpu<'_>| {
        if dirty > 0 {
            cpu.work(dirty);
        }
        cpu.read_cr0(); // so that the TLB holds the code page
        cpu.wait_until(1_000_000_000);
        cpu.wbinvd();
    };
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            code(boot);
        },
        code,
        nothing,
    );
    assert_eq!(machine.counters(0).lines_written_back, dirty);
    assert_eq!(machine.counters(1).lines_written_back, dirty);
    [0, 1].map(|cpu| machine.time(cpu) - 1_000_000_000)
}

#[test]
fn wbinvd_shares_the_bandwidth_and_may_be_serialised() {
    let [alone, beside] = two_wbinvds(0, 1, false);
    assert_eq!(alone, beside);
    assert_eq!(two_wbinvds(0, 2, true), [alone, 2 * alone]);
    assert_eq!(two_wbinvds(0, 1, true), [alone, alone]);
    // Two writers at once: the second line stream waits for the first one's.
    let lines = 16_000;
    let stream = lines * mtrr_pat::sim::Costs::default().write_back_line;
    assert!(stream < alone && alone < 2 * stream);
    assert_eq!(two_wbinvds(lines, 1, false), [alone, 2 * stream]);
}

#[test]
fn timeline_has_no_gaps_while_a_cpu_runs() {
    let mut config = Config::new(2, 1);
    config.timeline = true;
    let machine = Machine::new(config);
    life(&machine, &S3::all(Scribble::Off));
    let spans = machine.timeline(0);
    assert_eq!(spans[0].start, 0);
    assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(spans.last().unwrap().end, machine.time(0));
    for wanted in [
        Activity::Cached,
        Activity::Uncached,
        Activity::Window,
        Activity::Waiting,
    ] {
        assert!(
            spans.iter().any(|span| span.activity == wanted),
            "{wanted:?}"
        );
    }
    assert!(
        machine
            .timeline(1)
            .iter()
            .any(|span| span.activity == Activity::Halted)
    );
}

#[test]
fn false_sharing_costs_time() {
    #[repr(align(128))]
    struct Packed([Word; 32]);
    let time = |false_sharing, step: usize| {
        let mut config = Config::new(2, 1);
        config.costs.false_sharing = false_sharing;
        let machine = Machine::new(config);
        let slots = Packed([const { Word::new(0) }; 32]);
        let code = |cpu: &mut SimCpu<'_>| {
            cpu.wait_until(30_000_000);
            for n in 0..1000 {
                slots.0[cpu.number() * step].store(n, Ordering::Release);
            }
        };
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                code(boot);
                boot.machine().time(0) - 30_000_000
            },
            code,
            nothing,
        )
    };
    assert!(time(true, 1) > 4 * time(true, 16));
    assert_eq!(time(false, 1), time(false, 16));
}

/// How long a CPU sweeps a buffer, alone or while another one streams stores to a device.
fn sweep_time(buffer: u64, framebuffer_slot: Option<u8>) -> u64 {
    const FRAMEBUFFER: u64 = 0xd000_0000;
    let mut config = Config::new(2, 1);
    config.log = false;
    config.boot.pat = Some(Pat::LINUX);
    config.aps.pat = Some(Pat::LINUX);
    config.mappings.push(Mapping {
        start: FRAMEBUFFER,
        end: FRAMEBUFFER + 0x100_0000,
        slot: framebuffer_slot.unwrap_or(0),
        global: false,
    });
    let machine = Machine::new(config);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            boot.wait_until(50_000_000);
            let before = boot.machine().time(0);
            boot.sweep(buffer);
            boot.machine().time(0) - before
        },
        |ap| {
            if framebuffer_slot.is_some() {
                ap.stream_stores(FRAMEBUFFER, 0x1_0000);
            }
        },
        nothing,
    )
}

#[test]
fn write_combining_neighbours_fill_the_shared_queue() {
    let (small, large) = (16 << 10, 64 << 10);
    let (wc, uc_minus) = (Some(1), Some(2));
    let slowdown = |buffer, slot| sweep_time(buffer, slot) / (sweep_time(buffer, None) / 100);
    let factor = slowdown(large, wc);
    assert!(factor > 500, "{factor} %");
    for (buffer, slot) in [(small, wc), (large, uc_minus), (small, uc_minus)] {
        let factor = slowdown(buffer, slot);
        assert!((99..110).contains(&factor), "{factor} %");
    }
}

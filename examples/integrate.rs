//! The calls a kernel makes, in the order of its life, run on the simulated machine.
//!
//! `cargo run --features sim --example integrate`

// README
use mtrr_pat::prelude::*;

static SYNC: CacheSync<64> = CacheSync::new();

/// Boot CPU, before any AP runs. On hardware: `let cpu = &mut unsafe { NativeCpu::claim() };`
fn boot(cpu: &mut impl CpuOps, policy: Policy) -> Result<Outcome, Error> {
    // SAFETY: no AP runs yet.
    unsafe { SYNC.boot_init(cpu, 0, policy) }
}

/// Boot CPU, before the SIPI of CPU `n`; interrupts stay masked until that is sent.
fn before_sipi(cpu: &mut impl CpuOps, n: usize, apic_id: u32) -> Result<(), Error> {
    // SAFETY: the SIPI goes to this id, and makes it CPU `n`.
    unsafe { SYNC.starting(cpu, n, Place::Apic(apic_id)) }
}

/// AP `n`, first thing; `kick(m)` sends CPU `m` an interrupt. Then it takes interrupts.
fn ap_entry(cpu: &mut impl CpuOps, n: usize, kick: impl FnMut(usize)) -> Result<Outcome, Error> {
    SYNC.ap_online(cpu, n, kick)
}

/// CPU `n`, in the handler of that interrupt.
fn kicked(cpu: &mut impl CpuOps, n: usize) -> Result<Attendance, Error> {
    SYNC.attend(cpu, n)
}
// README

use mtrr_pat::layout::{Edit, Fitted, LayoutError, Region};
use mtrr_pat::memtype::MemType;
use mtrr_pat::sim::{Config, Machine, S3, Scribble, SimCpu};

/// Steps of the wait for one AP before it is given up: each of 3.3 microseconds here, together longer than
/// the time for which an AP may wait for its sibling (`hold`).
const PATIENCE: u32 = 100_000;

/// What the kernel does between the calls: send SIPIs and wait.
fn start_aps(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    for n in 1..cpu.machine().config().cpus() {
        let apic_id = cpu.machine().config().apic_id(n);
        cpu.cli(); // until the SIPI is sent
        before_sipi(cpu, n, apic_id)?;
        cpu.send_init_sipi(n);
        cpu.sti(); // a sibling that comes up may have to hold this CPU
        for _ in 0..PATIENCE {
            SYNC.hold_point(cpu, 0)?;
            cpu.work(10_000);
            if SYNC.state(n)? == CpuState::Running {
                break;
            }
        }
        if SYNC.state(n)? != CpuState::Running {
            cpu.send_init(n); // it may be merely late
            // SAFETY: now it executes nothing.
            unsafe { SYNC.offline(n) }?;
        }
    }
    let ipis = cpu.ipis();
    let summary = SYNC.resync(cpu, 0, |n| ipis.send(n))?;
    // Formatted first: reading the report lets other simulated CPUs run, and they may print too.
    let report = SYNC.report().to_string();
    println!("{report}\n{summary}\n");
    summary.ok()
}

/// The map of now, with a frame buffer in write-combining.
fn with_framebuffer(now: &Snapshot) -> Result<Fitted, LayoutError> {
    let mut edit = Edit::of(now)?;
    edit.ram_end(1 << 32); // as the firmware's memory map says
    edit.set(Region::mmio(
        0xd000_0000,
        0xd100_0000,
        MemType::WriteCombining,
    ))?;
    edit.fit()
}

/// The same on every CPU at once.
fn framebuffer(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    let (_, now) = SYNC.target()?;
    let fitted = with_framebuffer(&now).expect("or it is left to the page tables");
    println!("frame buffer: {fitted}");
    let ipis = cpu.ipis();
    // SAFETY: what changes is the frame buffer.
    let changed = unsafe { SYNC.change(cpu, 0, &fitted.target, |n| ipis.send(n)) };
    let summary = changed?;
    println!("{summary}\n");
    summary.ok()
}

fn life(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    let policy = Policy::DEFAULT.with_command_line("quiet mtrr_pat=early,pat=linux");
    // A mistake is logged, and the rest is taken.
    let outcome = boot(cpu, policy.unwrap_or_else(PolicyError::warned))?;
    println!("boot CPU: {outcome}");
    outcome.ok()?;
    start_aps(cpu)?;
    framebuffer(cpu)?;
    SYNC.suspend(cpu, 0)?;
    cpu.s3(&S3::all(Scribble::Off));
    // SAFETY: the APs wait for a SIPI.
    let outcome = unsafe { SYNC.boot_resume(cpu, 0) }?;
    println!("boot CPU after S3: {outcome}");
    outcome.ok()?;
    start_aps(cpu)?;
    let ipis = cpu.ipis();
    let summary = SYNC.check(cpu, 0, |n| ipis.send(n))?;
    println!("compared once more: {summary}");
    summary.ok()
}

fn main() -> Result<(), Error> {
    let machine = Machine::new(Config::new(4, 2));
    machine.run(
        life,
        |ap| {
            let (n, ipis) = (ap.number(), ap.ipis());
            let outcome = ap_entry(ap, n, |sibling| ipis.send(sibling));
            let outcome = outcome.expect("it was declared starting");
            assert_eq!(outcome.error, None, "nothing is wrong with this machine");
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| {
            let n = cpu.number();
            kicked(cpu, n).expect("no sibling is stuck on this machine");
        },
    )?;
    assert_eq!(SYNC.report().out_of_sync().count(), 0);
    Ok(())
}

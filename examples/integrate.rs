//! The calls a kernel makes, in the order of its life, run on the simulated machine.
//!
//! `cargo run --features sim --example integrate`

// README
use mtrr_pat::{cpu::CpuOps, error::Error, policy::Policy, sync::CacheSync, topology::Place};
static SYNC: CacheSync<64> = CacheSync::new();
/// Boot CPU, before any AP runs. On hardware `cpu` is `unsafe { NativeCpu::claim() }`.
fn boot(cpu: &mut impl CpuOps, command_line: &str) -> Result<(), Error> {
    let policy = Policy::DEFAULT.with_command_line(command_line);
    SYNC.boot_init(cpu, 0, policy.unwrap_or_default()).map(drop)
}
/// Boot CPU, interrupts masked until the SIPI is sent. Its wait for `n` calls `SYNC.hold_point(cpu, 0)`.
fn before_sipi(cpu: &mut impl CpuOps, n: usize, apic_id: u32) -> Result<(), Error> {
    SYNC.starting(cpu, n, Place::Apic(apic_id))
}
/// CPU `n`, first thing. `kick(m)` sends CPU `m` an interrupt whose handler is `kicked`.
fn ap_entry(cpu: &mut impl CpuOps, n: usize, kick: impl FnMut(usize)) -> Result<(), Error> {
    SYNC.ap_online(cpu, n, kick).map(drop)
}
fn kicked(cpu: &mut impl CpuOps, n: usize) -> Result<(), Error> {
    SYNC.hold_point(cpu, n)?; // a sibling needs this CPU to stand still
    SYNC.attend(cpu, n).map(drop) // the boot CPU leads a rendezvous
}
// Boot CPU: all are up: `SYNC.resync(cpu, 0, kick)`; S3: `SYNC.suspend(cpu)`, `SYNC.boot_resume(cpu, 0)`.
// README

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::sim::{Config, Machine, S3, Scribble, SimCpu};

static UP: Word = Word::new(0);

/// What the kernel does between the calls: send SIPIs, wait, count.
fn start_aps(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    UP.store(0, Ordering::Release);
    for n in 1..cpu.machine().config().cpus() {
        let apic_id = cpu.machine().config().apic_id(n);
        before_sipi(cpu, n, apic_id)?;
        cpu.send_init_sipi(n);
        while UP.load(Ordering::Acquire) < n as u32 {
            SYNC.hold_point(cpu, 0)?;
            let soon = cpu.rdtsc() + 10_000;
            cpu.pause_while(&UP, n as u32 - 1, soon);
        }
    }
    let ipis = cpu.ipis();
    let summary = SYNC.resync(cpu, 0, |n| ipis.send(n))?;
    println!("{}\n{summary:?}\n", SYNC.report());
    Ok(())
}

fn life(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    boot(cpu, "quiet mtrr_pat=early,pat=linux")?;
    start_aps(cpu)?;
    SYNC.suspend(cpu)?;
    for n in 1..cpu.machine().config().cpus() {
        SYNC.offline(cpu, n)?;
    }
    cpu.s3(&S3::all(Scribble::Off));
    SYNC.boot_resume(cpu, 0)?;
    start_aps(cpu)
}

fn main() -> Result<(), Error> {
    let machine = Machine::new(Config::new(4, 2));
    machine.run(
        life,
        |ap| {
            let (n, ipis) = (ap.number(), ap.ipis());
            let online = ap_entry(ap, n, |sibling| ipis.send(sibling));
            online.expect("the AP was declared starting");
            UP.store(n as u32, Ordering::Release);
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

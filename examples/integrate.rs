//! The calls a kernel makes, in the order of its life, run on the simulated machine.
//!
//! `cargo run --features sim --example integrate`

// README
use mtrr_pat::{cpu::CpuOps, error::Error, policy::Policy, report::Outcome, sync::CacheSync};
static SYNC: CacheSync<64> = CacheSync::new();
/// Boot CPU, before any AP runs. On hardware `cpu` is `unsafe { NativeCpu::claim() }`; the policy
/// may come from a command line: `Policy::DEFAULT.with_command_line("mtrr_pat=early,pat=linux")`.
fn boot(cpu: &mut impl CpuOps, policy: Policy) -> Result<Outcome, Error> {
    SYNC.boot_init(cpu, 0, policy)
}
/// Boot CPU, interrupts masked until the SIPI is sent; then `hold_point` until `state` is `Running`.
fn before_sipi(cpu: &mut impl CpuOps, n: usize, apic_id: u32) -> Result<(), Error> {
    SYNC.starting(cpu, n, mtrr_pat::topology::Place::Apic(apic_id))
}
/// CPU `n`, first thing; `kick(m)` interrupts CPU `m`. Then it takes interrupts.
fn ap_entry(cpu: &mut impl CpuOps, n: usize, kick: impl FnMut(usize)) -> Result<Outcome, Error> {
    SYNC.ap_online(cpu, n, kick)
}
/// The kick's handler: stand still for a sibling, or take part in a rendezvous.
fn kicked(cpu: &mut impl CpuOps, n: usize) -> Result<(), Error> {
    let held = SYNC.hold_point(cpu, n);
    SYNC.attend(cpu, n).and(held)
}
// README

use mtrr_pat::rendezvous::CpuState;
use mtrr_pat::sim::{Config, Machine, S3, Scribble, SimCpu};

/// What the kernel does between the calls: send SIPIs and wait.
fn start_aps(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    for n in 1..cpu.machine().config().cpus() {
        let apic_id = cpu.machine().config().apic_id(n);
        cpu.cli(); // until the SIPI is sent
        before_sipi(cpu, n, apic_id)?;
        cpu.send_init_sipi(n);
        cpu.sti(); // a sibling that comes up may have to hold this CPU
        while SYNC.state(n)? != CpuState::Running {
            SYNC.hold_point(cpu, 0)?;
            cpu.work(10_000);
        }
    }
    let ipis = cpu.ipis();
    let summary = SYNC.resync(cpu, 0, |n| ipis.send(n))?;
    // Formatted first: reading the report lets other simulated CPUs run, and they may print too.
    let report = SYNC.report().to_string();
    println!("{report}\n{summary}\n");
    Ok(())
}

fn life(cpu: &mut SimCpu<'_>) -> Result<(), Error> {
    let policy = Policy::DEFAULT.with_command_line("quiet mtrr_pat=early,pat=linux");
    let outcome = boot(cpu, policy.expect("words this crate knows"))?;
    println!("boot CPU: {outcome}");
    start_aps(cpu)?;
    SYNC.suspend(cpu)?;
    for n in 1..cpu.machine().config().cpus() {
        SYNC.offline(n)?;
    }
    cpu.s3(&S3::all(Scribble::Off));
    let outcome = SYNC.boot_resume(cpu, 0)?;
    println!("boot CPU after S3: {outcome}");
    start_aps(cpu)
}

fn main() -> Result<(), Error> {
    let machine = Machine::new(Config::new(4, 2));
    machine.run(
        life,
        |ap| {
            let (n, ipis) = (ap.number(), ap.ipis());
            let online = ap_entry(ap, n, |sibling| ipis.send(sibling));
            let outcome = online.expect("the AP was declared starting");
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

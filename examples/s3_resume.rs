//! The main job on the simulated machine: suspend, wake with what the firmware left, and give every
//! CPU its memory types back, early or deferred.

use clap::{Parser, ValueEnum};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps};
use mtrr_pat::delta::Changes;
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{PatChoice, Policy, Resync};
use mtrr_pat::report::{CpuReport, Path};
use mtrr_pat::sim::{Config, Machine, MtrrScope, S3, Scribble, SimCpu};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::{Place, bringup_order};
use serde_json::json;

const MOST_CPUS: usize = 1024;

/// Suspends and resumes a simulated machine, and shows what each CPU needed.
#[derive(Parser)]
struct Args {
    /// Resync each AP as it comes up, or all together at the end; both when not given
    #[arg(long)]
    mode: Option<Mode>,
    /// Print one JSON object per mode, a line each, and nothing else
    #[arg(long)]
    json: bool,
    /// Cores of the machine
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=512))]
    cores: u16,
    /// Threads of each core
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=8))]
    threads: u16,
    /// Who shares a set of MTRRs
    #[arg(long, default_value = "thread")]
    scope: Scope,
    /// What the firmware leaves on the APs when the machine wakes
    #[arg(long, default_value = "off")]
    scribble: Left,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Early,
    Deferred,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Deferred => "deferred",
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Scope {
    Core,
    Thread,
}

#[derive(Clone, Copy, ValueEnum)]
enum Left {
    /// MTRRs off (E=0)
    Off,
    /// Every MTRR 0, PAT as reset leaves it
    Zeroed,
    /// One variable range of another type
    Range,
    /// The PAT alone
    Pat,
    /// MTRRs off on every second core only
    Some,
    /// What the boot CPU has: well-behaved firmware
    None,
}

impl Left {
    fn profile(self, cores: usize) -> S3 {
        match self {
            Self::Off => S3::all(Scribble::Off),
            Self::Zeroed => S3::all(Scribble::Zeroed),
            Self::Range => S3::all(Scribble::AnotherRange),
            Self::Pat => S3::all(Scribble::PatReset),
            Self::Some => S3::aps(Scribble::only_cores((0..cores).step_by(2), Scribble::Off)),
            Self::None => S3::all(Scribble::Kept),
        }
    }
}

/// What this little kernel knows about the run besides the crate's own state.
struct Kernel {
    sync: Box<CacheSync<MOST_CPUS>>,
    /// The number of the AP that came up last.
    up: Word,
    /// Registers as the firmware left them, written by each CPU before its sync.
    before: Vec<std::sync::Mutex<Option<(Snapshot, bool)>>>,
}

impl Kernel {
    fn start_aps(&self, boot: &mut SimCpu<'_>) -> Result<(), Error> {
        let config = boot.machine().config();
        let places: Vec<Place> = (0..config.cpus())
            .map(|n| Place::Apic(config.apic_id(n)))
            .collect();
        let shift = self.sync.platform().and_then(|platform| platform.smt_shift);
        for ap in bringup_order(&places, shift).filter(|n| *n != 0) {
            self.up.store(0, Ordering::Release);
            self.sync.starting(boot, ap, places[ap])?;
            boot.send_init_sipi(ap);
            while self.up.load(Ordering::Acquire) != ap as u32 {
                self.sync.hold_point(boot, 0)?;
                let soon = boot.rdtsc() + 10_000;
                boot.pause_while(&self.up, 0, soon);
            }
        }
        let ipis = boot.ipis();
        self.sync.resync(boot, 0, |n| ipis.send(n)).map(drop)
    }

    fn note_before(&self, cpu: &SimCpu<'_>) {
        let n = cpu.number();
        let machine = cpu.machine();
        let (cr0, ..) = machine.control_registers(n);
        let seen = (machine.registers(n), cr0 & (CR0_CD | CR0_NW) != 0);
        *self.before[n].lock().expect("no CPU panicked") = Some(seen);
    }

    fn boot(&self, boot: &mut SimCpu<'_>, mode: Mode, profile: &S3) -> Result<(), Error> {
        let policy = Policy {
            resync: match mode {
                Mode::Early => Resync::Early,
                Mode::Deferred => Resync::Deferred,
            },
            pat: PatChoice::Layout(Pat::LINUX),
            ..Policy::DEFAULT
        };
        self.sync.boot_init(boot, 0, policy)?;
        self.start_aps(boot)?;
        self.sync.suspend(boot)?;
        for ap in 1..boot.machine().config().cpus() {
            self.sync.offline(boot, ap)?;
        }
        boot.s3(profile);
        self.note_before(boot);
        self.sync.boot_resume(boot, 0)?;
        self.start_aps(boot)
    }

    fn ap(&self, ap: &mut SimCpu<'_>) {
        let (n, ipis) = (ap.number(), ap.ipis());
        self.note_before(ap);
        // What goes wrong with its registers is in the report; its number was declared.
        let _ = self.sync.ap_online(ap, n, |sibling| ipis.send(sibling));
        self.up.store(n as u32, Ordering::Release);
        ap.sti();
        while ap.halt_until_ipi() {}
    }

    fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let n = cpu.number();
        // A stuck sibling or a second arrival is in the report of the boot CPU.
        let _ = self.sync.hold_point(cpu, n);
        let _ = self.sync.attend(cpu, n);
    }
}

/// One CPU's line, from what was seen before, done, and found after.
struct Line {
    report: CpuReport,
    apic_id: u32,
    core: usize,
    thread: usize,
    before: String,
    in_sync_after: bool,
    after: String,
}

fn state(registers: &Snapshot, caching_off: bool) -> String {
    let def = registers.def_type;
    let memtype = def.memtype().map_or("??", |memtype| memtype.short());
    let used = registers
        .variable_ranges()
        .iter()
        .filter(|r| r.valid())
        .count();
    let pat = match registers.pat {
        Some(Pat::POWER_ON) => "reset",
        Some(Pat::LINUX) => "linux",
        Some(_) => "other",
        None => "none",
    };
    let mtrr = if def.enabled() { "on " } else { "off" };
    let cache = if caching_off { " CD" } else { "" };
    format!("MTRR {mtrr} {memtype} {used} ranges, PAT {pat}{cache}")
}

fn lines(kernel: &Kernel, machine: &Machine) -> Vec<Line> {
    let boot = machine.registers(0);
    let config = machine.config();
    let line = |report: CpuReport| {
        let now = machine.registers(report.cpu);
        let (cr0, ..) = machine.control_registers(report.cpu);
        let caching_off = cr0 & (CR0_CD | CR0_NW) != 0;
        let before = kernel.before[report.cpu].lock().expect("no CPU panicked");
        let (core, thread) = config.place(report.cpu);
        Line {
            report,
            apic_id: config.apic_id(report.cpu),
            core,
            thread,
            before: before.map_or_else(String::new, |(registers, off)| state(&registers, off)),
            in_sync_after: now == boot && !caching_off,
            after: state(&now, caching_off),
        }
    };
    kernel.sync.report().cpus().map(line).collect()
}

/// The path under the name the JSON promises: unused pairs change nothing that is in force.
fn json_path(path: Path) -> &'static str {
    match path {
        Path::UnusedPairs => Path::InSync.name(),
        Path::CheckedIn | Path::Differs => Path::Failed.name(),
        other => other.name(),
    }
}

fn print_json(mode: Mode, lines: &[Line]) {
    let cpus: Vec<_> = lines
        .iter()
        .map(|line| {
            let outcome = line.report.outcome;
            let changes = outcome.map_or(Changes::empty(), |o| o.changes) - Changes::ROUTING;
            json!({
                "cpu": line.report.cpu,
                "apic_id": line.apic_id,
                "core": line.core,
                "thread": line.thread,
                "path": outcome.map_or("failed", |o| json_path(o.path)),
                "changed": changes.names().collect::<Vec<_>>(),
                "in_sync_after": line.in_sync_after,
            })
        })
        .collect();
    let differ = lines.iter().filter(|line| !line.in_sync_after).count();
    println!(
        "{}",
        json!({"mode": mode.name(), "cpus": cpus, "differ_after": differ})
    );
}

fn print_table(mode: Mode, lines: &[Line]) {
    println!("{} resync after S3:", mode.name());
    println!(
        "{:>4} {:>4} {:>4} {:>6}  {:<34} {:<10} {:<28} after",
        "cpu", "apic", "core", "thread", "before", "path", "changed"
    );
    for line in lines {
        let (path, changes) = line.report.outcome.map_or_else(
            || ("none", String::new()),
            |o| (o.path.name(), o.changes.to_string()),
        );
        println!(
            "{:>4} {:>4} {:>4} {:>6}  {:<34} {:<10} {:<28} {}{}",
            line.report.cpu,
            line.apic_id,
            line.core,
            line.thread,
            line.before,
            path,
            changes,
            line.after,
            if line.in_sync_after { "" } else { "  DIFFERS" },
        );
    }
    let differ = lines.iter().filter(|line| !line.in_sync_after).count();
    println!(
        "{differ} of {} CPUs differ from the boot CPU\n",
        lines.len()
    );
}

/// Runs one mode; returns whether every CPU holds the boot CPU's state afterwards.
fn run(args: &Args, mode: Mode) -> Result<bool, Error> {
    let mut config = Config::new(usize::from(args.cores), usize::from(args.threads));
    config.scope = match args.scope {
        Scope::Core => MtrrScope::Core,
        Scope::Thread => MtrrScope::Thread,
    };
    config.log = false;
    let cpus = config.cpus();
    if cpus > MOST_CPUS {
        return Err(Error::CpuOutOfRange {
            cpu: cpus - 1,
            cpus: MOST_CPUS,
        });
    }
    let profile = args.scribble.profile(usize::from(args.cores));
    let kernel = Kernel {
        sync: Box::new(CacheSync::new()),
        up: Word::new(0),
        before: (0..cpus).map(|_| std::sync::Mutex::new(None)).collect(),
    };
    let machine = Machine::new(config);
    machine.run(
        |boot| kernel.boot(boot, mode, &profile),
        |ap| kernel.ap(ap),
        |cpu| kernel.interrupt(cpu),
    )?;
    let lines = lines(&kernel, &machine);
    if args.json {
        print_json(mode, &lines);
    } else {
        print_table(mode, &lines);
    }
    Ok(lines.iter().all(|line| line.in_sync_after))
}

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let modes = args
        .mode
        .map_or(vec![Mode::Early, Mode::Deferred], |mode| vec![mode]);
    let mut all = true;
    for mode in modes {
        match run(&args, mode) {
            Ok(in_sync) => all &= in_sync,
            Err(error) => {
                eprintln!("s3_resume: {error}");
                return std::process::ExitCode::from(2);
            }
        }
    }
    std::process::ExitCode::from(u8::from(!all))
}

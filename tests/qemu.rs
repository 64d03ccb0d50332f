//! The real kernel (`examples/kernel`) on QEMU, through real S3 sleeps.
//!
//! A run counts only with the kernel's end line *and* its exit code. What this cannot show: QEMU stores these registers and has no
//! caches, so it proves order, agreement and survival, not caching.
//!
//! Environment: `MTRR_PAT_QEMU=skip` leaves all of this out; `MTRR_PAT_QEMU_KVM=1` adds runs under KVM; `MTRR_PAT_QEMU_BOOTS=100`
//! sets the length of the stress loop, `MTRR_PAT_QEMU_ROUNDS` the sleeps in each of its boots, `MTRR_PAT_QEMU_SMP=64` a size to add;
//! `MTRR_PAT_QEMU_JOBS` how many machines run at a time (2), `MTRR_PAT_QEMU_PATIENCE` a factor on all time limits.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]

mod vm;

use std::sync::Mutex;
use std::thread;
use vm::object::{Object, is_locked};
use vm::{Run, Vm, c_kernel};

const MACHINES: [&str; 2] = ["pc", "q35"];
const MODES: [&str; 2] = ["early", "deferred"];
const SIZES: [&str; 5] = ["1", "2", "4", "8", "8,cores=4,threads=2"];
const SCRIBBLES: [&str; 7] = ["none", "sync", "off", "zero", "range", "pat", "some"];

/// CPUs in a `-smp` argument.
fn cpus(smp: &str) -> usize {
    smp.split(',')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number first")
}

/// Runs all of them, as many at a time as `Vm::run` allows, and fails with the log of each that went wrong.
fn run_all(machines: Vec<Vm>, check: impl Fn(&Vm, &Run) -> Result<(), String> + Sync) {
    let total = machines.len();
    let queue = Mutex::new(machines.into_iter());
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().expect("workers do not panic").next();
            let Some(vm) = next else { break };
            let run = vm.run();
            let verdict = if run.succeeded() {
                check(&vm, &run)
            } else {
                Err("no end line with exit code 33".into())
            };
            match verdict {
                Ok(()) => println!("ok    {vm}  ({} wakes, {:.1} s)", run.wakes, run.elapsed.as_secs_f32()),
                Err(reason) => failures.lock().expect("workers do not panic").push(format!(
                    "FAILED {vm}\n{reason}; exit code {:?} after {:.1} s, {} wakes\n--- QEMU says\n{}--- serial log\n{}---",
                    run.code,
                    run.elapsed.as_secs_f32(),
                    run.wakes,
                    run.stderr,
                    run.serial
                )),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("workers do not panic");
    assert!(
        failures.is_empty(),
        "{} of {total} runs failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// The kernel's line for each CPU and round, taken apart.
struct Line<'a> {
    round: u32,
    cpu: usize,
    before: &'a str,
    done: &'a str,
}

impl<'a> Line<'a> {
    /// `round 1 cpu 2 apic 2 core 1 thread 0 | before .. | path=window changed=.. | after ..`
    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.split(" | ");
        let mut words = parts.next()?.split(' ');
        let mut value = |name| {
            (words.next() == Some(name))
                .then(|| words.next()?.parse::<usize>().ok())
                .flatten()
        };
        let (round, cpu) = (value("round")? as u32, value("cpu")?);
        Some(Self {
            round,
            cpu,
            before: parts.next()?,
            done: parts.next()?,
        })
    }

    fn all(log: &'a str) -> impl Iterator<Item = Self> {
        log.lines().filter_map(Self::parse)
    }

    fn path(&self) -> &'a str {
        self.word("path=")
    }

    fn word(&self, key: &str) -> &'a str {
        self.done
            .split(' ')
            .find_map(|word| word.strip_prefix(key))
            .unwrap_or("")
    }
}

/// Every CPU has a line in every round, the boot included.
fn complete(vm: &Vm, run: &Run, rounds: u32) -> Result<(), String> {
    let (lines, wanted) = (
        Line::all(&run.serial).count(),
        cpus(vm.smp) * (rounds as usize + 1),
    );
    if lines != wanted {
        return Err(format!("{lines} lines about CPUs, not {wanted}"));
    }
    let slept = vm.append.contains("wake=rtc") || run.wakes == rounds;
    if slept {
        small_stacks(run)
    } else {
        Err(format!("{} wakes, not {rounds}", run.wakes))
    }
}

/// What the README says of stacks: of an AP, of its interrupt handler, and of calls on the boot CPU.
fn small_stacks(run: &Run) -> Result<(), String> {
    const LIMIT: u32 = 8 * 1024;
    for label in ["AP ", "in its interrupt handler ", "of it by the library "] {
        let bytes = run
            .serial
            .lines()
            .filter(|line| line.starts_with("sizes: "))
            .find_map(|line| {
                let digits = line.split_once(label)?.1;
                digits.split(|c: char| !c.is_ascii_digit()).next()
            })
            .and_then(|digits| digits.parse::<u32>().ok())
            .ok_or_else(|| format!("no figure for a stack: {label}"))?;
        if bytes >= LIMIT {
            return Err(format!("{bytes} bytes of stack: {label}"));
        }
    }
    Ok(())
}

/// What S3 does to a CPU under TCG: nothing is left, so all memory is uncached, and the PAT is that of power-on.
fn lost_everything(run: &Run) -> Result<(), String> {
    let kept = Line::all(&run.serial)
        .filter(|line| line.round > 0 && line.cpu > 0)
        .find(|line| !line.before.contains("E=0") || !line.before.contains("pat=0007040600070406"));
    match kept {
        None => Ok(()),
        Some(line) => Err(format!(
            "CPU {} came out of S3 with {}: the test shows less than it should",
            line.cpu, line.before
        )),
    }
}

/// Every AP went one of these ways, in every round after the first change of the map.
fn went(run: &Run, paths: &[&str]) -> Result<(), String> {
    let stray = Line::all(&run.serial)
        .filter(|line| line.round > 0 && line.cpu > 0)
        .find(|line| !paths.contains(&line.path()));
    match stray {
        None => Ok(()),
        Some(line) => Err(format!(
            "CPU {} went by path {:?} in round {}, not one of {paths:?}",
            line.cpu,
            line.path(),
            line.round
        )),
    }
}

const ROUNDS: u32 = 5;

fn matrix(machine: &'static str) {
    if !vm::wanted() {
        return;
    }
    let rows = MODES.into_iter().flat_map(|mode| {
        SIZES.map(|smp| Vm::new(machine, smp, format!("resync={mode} rounds={ROUNDS}")))
    });
    run_all(rows.collect(), |vm, run| {
        complete(vm, run, ROUNDS)?;
        lost_everything(run)?;
        went(run, &["window"])
    });
}

#[test]
fn five_sleeps_on_pc() {
    matrix("pc");
}

#[test]
fn five_sleeps_on_q35() {
    matrix("q35");
}

/// Whatever the firmware does to an AP, the cheapest path that helps is taken.
#[test]
fn every_scribble() {
    if !vm::wanted() {
        return;
    }
    let rows = MODES.into_iter().flat_map(|mode| {
        SCRIBBLES.map(|scribble| {
            // Both machines, without doubling the number of runs.
            let machine = MACHINES[usize::from(mode == "early")];
            Vm::new(
                machine,
                "4,cores=2,threads=2",
                format!("resync={mode} scribble={scribble} rounds=2"),
            )
        })
    });
    run_all(rows.collect(), |vm, run| {
        complete(vm, run, 2)?;
        // The trampoline leaves caching off, so a CPU whose registers are right still has that to put right:
        // in the rendezvous it is on already.
        let paths: &[&str] = match vm
            .append
            .split("scribble=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
        {
            Some("sync") => &["caching_on", "in_sync"],
            Some("pat") => &["pat"],
            Some("some") => &["window", "caching_on", "in_sync"],
            _ => &["window"],
        };
        went(run, paths)
    });
}

/// A trampoline that only turns on protection and paging leaves its CPU with CD=NW=1, as INIT does.
#[test]
fn naive_trampoline() {
    if !vm::wanted() {
        return;
    }
    let rows = MODES.into_iter().flat_map(|mode| {
        ["none", "sync"].map(|scribble| {
            Vm::new(
                "pc",
                "4",
                format!("resync={mode} trampoline=naive scribble={scribble} rounds=2"),
            )
        })
    });
    run_all(rows.collect(), |vm, run| {
        complete(vm, run, 2)?;
        for line in run.serial.lines().filter(|line| line.contains(" | after ")) {
            let (before, after) = line.split_once(" | path=").unwrap_or((line, ""));
            let ap = !line.contains(" cpu 0 ");
            if ap != before.contains("caching=off") || after.contains("caching=off") {
                return Err(format!("not caching off, then on: {line}"));
            }
        }
        Ok(())
    });
}

/// All APs are declared, then all are started, and each is brought in line by itself.
#[test]
fn all_at_once() {
    if !vm::wanted() {
        return;
    }
    let rows = MODES.into_iter().flat_map(|mode| {
        ["8", "8,cores=4,threads=2"].map(|cpus| {
            Vm::new(
                "q35",
                cpus,
                format!("resync={mode} start=parallel rounds=2"),
            )
        })
    });
    run_all(rows.collect(), |vm, run| {
        complete(vm, run, 2)?;
        went(run, &["window"])
    });
}

/// Two threads of a core: in whatever order they come up the one that runs is held, once it hears of it.
#[test]
fn siblings_are_held_or_waited_for() {
    if !vm::wanted() {
        return;
    }
    const SMP: &str = "8,cores=4,threads=2";
    let rows = vec![
        Vm::new("q35", SMP, "resync=early order=threads rounds=2"),
        Vm::new("q35", SMP, "resync=early order=listed rounds=2"),
        // Nobody tells the siblings, and they sleep: all are left to the rendezvous, but for the boot CPU's, which looks by itself.
        Vm::new(
            "q35",
            SMP,
            "resync=early order=listed hold=silent mtrr_pat=hold=50ms rounds=2",
        ),
    ];
    run_all(rows, |vm, run| {
        complete(vm, run, 2)?;
        let met = run
            .serial
            .lines()
            .filter(|line| line.contains("rendezvous of"))
            .count();
        let wanted = if vm.append.contains("silent") { 3 } else { 0 };
        if met == wanted {
            Ok(())
        } else {
            Err(format!("{met} rendezvous, not {wanted}"))
        }
    });
}

/// Other processors: no MTRRs, no PAT, another vendor, other widths. And a wake-up by the machine's own clock.
#[test]
fn other_machines() {
    if !vm::wanted() {
        return;
    }
    let on = |cpu, append: &str| Vm {
        cpu,
        ..Vm::new("pc", "2", append)
    };
    let rows = vec![
        on("qemu64,-mtrr", "rounds=2"),
        on("qemu64,-pat", "rounds=2"),
        on("qemu64,-mtrr,-pat", "rounds=2"),
        on("qemu64,phys-bits=36", "rounds=2 resync=deferred"),
        on("qemu64,phys-bits=52", "rounds=2"),
        on("qemu64,vendor=GenuineIntel", "rounds=2 resync=deferred"),
        on("max", "rounds=2 nopat"),
        on(
            "max",
            "rounds=2 resync=deferred no_aps_delay mtrr_pat=pat=low-half",
        ),
        on("", "rounds=1 wake=rtc"),
    ];
    run_all(rows, |vm, run| {
        complete(vm, run, if vm.append.contains("rtc") { 1 } else { 2 })
    });
}

/// A write-combining range for the frame buffer, planned, given to all CPUs, checked and taken back: in every round, so after a sleep
/// as well. Without a display adapter the same on addresses where nothing is.
#[test]
fn write_combining_framebuffer() {
    if !vm::wanted() {
        return;
    }
    let with = |machine, device| Vm {
        device,
        ..Vm::new(machine, "4", "wc=framebuffer rounds=1 quiet")
    };
    let rows = vec![with("pc", "VGA"), with("q35", "VGA"), with("pc", "")];
    run_all(rows, |vm, run| {
        let lines = |text: &str| {
            run.serial
                .lines()
                .filter(|line| line.contains(text))
                .count()
        };
        let adapters = if vm.device.is_empty() { 0 } else { 2 };
        let counts = [
            ("frame buffer of the display adapter", adapters),
            (
                "the crate's lookup says write-combining; its registers WC alone on 3 of 3",
                8,
            ),
            ("wc: added on 4 CPUs", 2),
            ("wc: undone on 4 CPUs", 2),
        ];
        match counts
            .into_iter()
            .find(|(text, count)| lines(text) != *count)
        {
            None => Ok(()),
            Some((text, count)) => Err(format!("{} times {text:?}, not {count}", lines(text))),
        }
    });
}

/// The touches for Bochs (`tests/bochs.sh`), which QEMU cannot judge: every layout can be programmed, and the map comes back.
#[test]
fn oracle_touches() {
    if !vm::wanted() {
        return;
    }
    let rows = vec![Vm::new("pc", "2", "oracle=types rounds=0 quiet")];
    run_all(rows, |_, run| {
        let lines = |text: &str| {
            run.serial
                .lines()
                .filter(|line| line.contains(text))
                .count()
        };
        let (pairs, overlaps) = (lines(" group=pair "), lines(" group=overlap "));
        if pairs == 30 && overlaps == 49 * 6 {
            Ok(())
        } else {
            Err(format!(
                "{pairs} touches for pairs of types, {overlaps} for overlaps"
            ))
        }
    });
}

/// The writer to the frame buffer and its neighbours: it runs to its end, and `nowc` refuses WC. What it measures on an emulator means
/// nothing, and nothing is made of it.
#[test]
fn write_combining_neighbours() {
    if !vm::wanted() {
        return;
    }
    let with = |device, append: &str| Vm {
        device,
        ..Vm::new(
            "pc",
            "4",
            format!("workload=wc-neighbour rounds=0 quiet {append}"),
        )
    };
    let rows = vec![with("VGA", ""), with("VGA", "nowc"), with("", "")];
    run_all(rows, |vm, run| {
        let lines = |text: &str| {
            run.serial
                .lines()
                .filter(|line| line.contains(text))
                .count()
        };
        let refused = usize::from(vm.append.contains("nowc"));
        let counts = [
            ("victims slowdown ", 6),
            ("neighbour: WC in slot of WC", 2 - 2 * refused),
            ("neighbour: WC in slot of UC-", 2 * refused),
            ("not write-combining: that is refused by policy", refused),
            ("neighbour: done", 1),
        ];
        match counts
            .into_iter()
            .find(|(text, count)| lines(text) != *count)
        {
            None => Ok(()),
            Some((text, count)) => Err(format!("{} times {text:?}, not {count}", lines(text))),
        }
    });
}

/// The kernel in C (`examples/c`): four CPUs, a write-combining range, S3, and all of it again. It compares every CPU's registers itself
/// with what the library says they are.
#[test]
fn kernel_in_c() {
    if !vm::wanted() {
        return;
    }
    let targets = c_kernel::targets().into_iter();
    let kinds = targets.flat_map(|target| {
        let compilers = c_kernel::compilers().into_iter();
        compilers.map(move |compiler| c_kernel::build(target, compiler))
    });
    let rows = kinds.flat_map(|image| {
        [(0, 0), (0, 1), (1, 0)].map(|(machine, mode)| Vm {
            image: Some(image.clone()),
            ..Vm::new(
                MACHINES[machine],
                "4",
                format!(
                    "mtrr_pat={},pat=linux,gather=30s,hold=5s,finish=30s mtrr-pat=mistake",
                    MODES[mode]
                ),
            )
        })
    });
    run_all(rows.collect(), |vm, run| {
        let lines = |text: &str| {
            run.serial
                .lines()
                .filter(|line| line.contains(text))
                .count()
        };
        let stack = run.serial.lines().find_map(|line| {
            let digits = line.strip_prefix("stack of the boot CPU, bytes: ")?;
            u32::from_str_radix(digits.trim_end(), 16).ok()
        });
        // As the header says of the call that takes most of it.
        if !stack.is_some_and(|bytes| (1..=32 << 10).contains(&bytes)) {
            return Err(format!("stack: {stack:?}"));
        }
        // The APs differ when they first meet if nobody brought them in line before.
        let deferred = usize::from(vm.append.contains("deferred"));
        let counts = [
            ("starting: MTRR_PAT_OK", 6),
            ("resync: MTRR_PAT_OK", 2),
            (
                "rendezvous of 4 CPUs, 3 differed, 0 out of sync",
                2 * deferred,
            ),
            (
                "check: MTRR_PAT_OK target 2: rendezvous of 4 CPUs, 0 differed",
                2,
            ),
            ("write-combining: MTRR_PAT_OK", 1),
            ("S3 took the registers", 1),
            ("resume: MTRR_PAT_OK window, differed in variable,pat", 1),
            (
                "WARN: command line: `mtrr-pat=mistake` is not understood",
                1,
            ),
            ("WRONG", 0),
        ];
        match counts
            .into_iter()
            .find(|(text, count)| lines(text) != *count)
        {
            None if run.wakes == 1 => Ok(()),
            None => Err(format!("{} wakes", run.wakes)),
            Some((text, count)) => Err(format!("{} times {text:?}, not {count}", lines(text))),
        }
    });
}

/// A long series, of a length the environment sets.
#[test]
fn boot_after_boot() {
    if !vm::wanted() {
        return;
    }
    let boots = vm::number("MTRR_PAT_QEMU_BOOTS").unwrap_or(4);
    let rounds = vm::number("MTRR_PAT_QEMU_ROUNDS").unwrap_or(ROUNDS);
    let row = |boot: u32| {
        let (machine, mode) = (MACHINES[boot as usize % 2], MODES[boot as usize / 2 % 2]);
        Vm::new(machine, "8", format!("resync={mode} rounds={rounds}"))
    };
    run_all((0..boots).map(row).collect(), |vm, run| {
        complete(vm, run, rounds)?;
        lost_everything(run)
    });
    println!("{boots} boots, {} sleeps", boots * rounds);
}

/// A machine with many CPUs, on request.
#[test]
fn many_cpus() {
    let Some(count) = vm::number("MTRR_PAT_QEMU_SMP") else {
        return;
    };
    if !vm::wanted() {
        return;
    }
    let smp: &'static str = count.to_string().leak();
    let patient = |vm: Vm| Vm {
        timeout: vm.timeout * 8,
        ..vm
    };
    let rows = MODES.into_iter().flat_map(|mode| {
        ["single", "parallel"].map(|start| {
            let line = format!("resync={mode} start={start} rounds=1");
            patient(Vm::new("q35", smp, line))
        })
    });
    run_all(rows.collect(), |vm, run| complete(vm, run, 1));
}

/// Under KVM, on request: another implementation of the registers, which refuses bad values.
#[test]
fn kvm() {
    if vm::number("MTRR_PAT_QEMU_KVM") != Some(1) || !vm::wanted() {
        return;
    }
    // QEMU's default model is AMD's, and this KVM has only some of AMD's registers.
    let rows = MACHINES.into_iter().flat_map(|machine| {
        ["qemu64", "qemu64,vendor=GenuineIntel"].map(|cpu| Vm {
            accel: "kvm",
            cpu,
            ..Vm::new(
                machine,
                "4",
                format!(
                    "resync={} rounds=2",
                    MODES[usize::from(cpu.contains("Intel"))]
                ),
            )
        })
    });
    run_all(rows.collect(), |vm, run| complete(vm, run, 2));
}

/// A register that is not as it should be is seen, and the run fails: at boot, and after a sleep.
#[test]
fn what_is_spoilt_is_seen() {
    if !vm::wanted() {
        return;
    }
    for round in 0..2 {
        let run = Vm::new("pc", "2", format!("spoil={round}")).run();
        let said = format!("round {round} cpu 0 DIFFERS in 1 (pat:1)");
        assert!(run.serial.contains(&said), "{}", run.serial);
        assert!(!run.succeeded() && run.code == Some(vm::FAILURE), "{run:?}");
    }
}

/// What an AP may execute before its MTRRs are on, in the code that is really linked: a locked
/// instruction would lock the bus, or fault where that is forbidden.
#[test]
fn no_locked_instruction_before_the_mtrrs_are_on() {
    let Some(kernel) = vm::built() else {
        return;
    };
    let object = Object::of(kernel);
    let reached = object.reached_from("ap_comes_up");
    let has = |operation: &str| reached.iter().any(|(_, code)| code.starts_with(operation));
    // It is the sync path, with the MSR access it is given as a pointer, and its fences.
    assert!(has("rdmsr") && has("wrmsr") && has("wbinvd") && has("mfence"));
    let locked: Vec<_> = reached.iter().filter(|(_, code)| is_locked(code)).collect();
    assert!(locked.is_empty(), "{locked:#?}");
    // The boot CPU has some, so they can be seen.
    assert!(object.all().any(is_locked));
}

//! The main job on the simulated machine: suspend, wake with what the firmware left, and give every
//! CPU its memory types back, early or deferred.

mod args;
mod kernel;
mod progress;
mod show;
mod timeline;

use clap::Parser;
use mtrr_pat::error::Error;
use mtrr_pat::sim::{Config, Machine};

use crate::args::{Args, Mode};
use crate::kernel::{Kernel, MOST_CPUS};
use crate::timeline::Panel;

/// Runs one mode; returns whether every CPU holds the boot CPU's state afterwards.
fn run(args: &Args, mode: Mode, panels: &mut Vec<Panel>) -> Result<bool, Error> {
    let mut config = Config::new(usize::from(args.cores), usize::from(args.threads));
    config.scope = args.scope.into();
    config.log = false;
    config.timeline = args.svg.is_some();
    config.costs.slice = 1_000_000_000; // work changes pace once a millisecond at most
    let cpus = config.cpus();
    if cpus > MOST_CPUS {
        return Err(Error::CpuOutOfRange {
            cpu: cpus - 1,
            cpus: MOST_CPUS,
        });
    }
    let profile = args.scribble.profile(usize::from(args.cores));
    let kernel = Kernel::new(cpus, mode);
    let machine = Machine::new(config);
    let took = machine.run(
        |boot| kernel.boot(boot, mode, &profile),
        |ap| kernel.ap(ap),
        |cpu| kernel.interrupt(cpu),
    )?;
    let lines = show::lines(&kernel, &machine);
    drop(kernel);
    if args.json {
        show::print_json(mode, &lines);
    } else {
        show::print_table(mode, &lines, took);
    }
    if args.svg.is_some() {
        panels.push(Panel::of(&machine, mode.name()));
    }
    Ok(lines.iter().all(|line| line.in_sync_after))
}

fn run_all(args: &Args) -> Result<bool, Box<dyn std::error::Error>> {
    let modes = args
        .mode
        .map_or(vec![Mode::Early, Mode::Deferred], |mode| vec![mode]);
    let mut all = true;
    let mut panels = Vec::new();
    for mode in modes {
        all &= run(args, mode, &mut panels)?;
    }
    if let Some(file) = &args.svg {
        std::fs::write(file, timeline::draw(&panels)?)?;
    }
    Ok(all)
}

fn main() -> std::process::ExitCode {
    match run_all(&Args::parse()) {
        Ok(all) => std::process::ExitCode::from(u8::from(!all)),
        Err(error) => {
            eprintln!("s3_resume: {error}");
            std::process::ExitCode::from(2)
        }
    }
}

//! The published resume times, and the two computers they come from.

use mtrr_pat::policy::Resync;

/// One application processor of one published resume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub machine: &'static str,
    pub kernel: &'static str,
    pub apic: usize,
    /// Milliseconds from "booting" to "is up".
    pub up: f64,
    /// Milliseconds from "is up" to the start of the next one.
    pub next: Option<f64>,
}

/// A computer whose firmware scribbles every core but the boot CPU's.
#[derive(Clone, Copy, Debug)]
pub struct Computer {
    pub name: &'static str,
    pub cores: usize,
    pub threads: usize,
    /// APIC ids of the APs, in the order they are started.
    pub order: &'static [usize],
}

pub const MACBOOK_2012: Computer = Computer {
    name: "MacBookPro9-1",
    cores: 4,
    threads: 2,
    order: &[2, 4, 6, 1, 3, 5, 7],
};

pub const MACBOOK_2015: Computer = Computer {
    name: "MacBookPro-2015",
    cores: 2,
    threads: 2,
    order: &[2, 1, 3],
};

/// Deferred over early, whole resume, as published for the first computer.
pub const DEFERRED_OVER_EARLY: f64 = 4159.0 / 1168.0;

impl Computer {
    /// The published figures of one mode, in the order the APs were started.
    pub fn published(&self, mode: Resync) -> Vec<Figure> {
        let word = match mode {
            Resync::Early => "early",
            Resync::Deferred => "deferred",
        };
        let mut figures = all();
        figures.retain(|f| f.machine == self.name && f.kernel.contains(word));
        figures
    }
}

/// Every row of the table.
pub fn all() -> Vec<Figure> {
    let table = include_str!("../../tests/data/resume-times.csv");
    let rows = table.lines().skip(1).filter(|line| !line.is_empty());
    rows.map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let number = |field: usize| fields[field].parse::<f64>().ok();
        Figure {
            machine: fields[0],
            kernel: fields[1],
            apic: fields[3].parse().expect("an APIC id"),
            up: number(4).expect("milliseconds"),
            next: number(5),
        }
    })
    .collect()
}

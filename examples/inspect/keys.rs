//! Which lines are worth a closer look: one cheap pass, for inputs of 100 MB.

/// What a line outside a list must contain to be of a format known here.
const KEYS: [&[u8]; 62] = [
    b" in 0x2",
    b" in $(seq",
    b" in {",
    b"egister",
    b"memtype",
    b"ioremap",
    b"conflicting",
    b"Linux version",
    b"Reg ",
    b"variable range",
    b"MTRR",
    b"mtrr",
    b"reg",
    b"PAT",
    b"base",
    b"TOM2",
    b"usable",
    b"last_pfn",
    b"RAM",
    b"range:",
    b"range=",
    b"rdmsr",
    b"cpu",
    b"CPU",
    b"core",
    b"Core",
    b"ddress size",
    b"endor",
    b"flags",
    b"physical id",
    b"MSR",
    b"msr",
    b"size 0x",
    b"processor",
    b"write-",
    b"uncach",
    b"Hypervisor",
    b"AMD",
    b"Intel",
    b" Y ",
    b"PHYS",
    b"pair",
    b"SYSCFG",
    b"UC:",
    b"WC:",
    b"WT:",
    b"WP:",
    b"WB:",
    b"ommand line",
    b"available",
    b"attribute",
    b"Default....",
    b"memcon",
    b"blue flame",
    b"NVRM",
    b"ombining",
    b"pages to ",
    b"BSD",
    b"OS type",
    b"innotek",
    b"pvbus0",
    b"HighMem",
];

/// The words above, by their first bytes.
#[derive(Debug)]
pub struct Keys {
    /// By byte: whether one of [`KEYS`] starts with it.
    starts: [bool; 256],
}

impl Default for Keys {
    fn default() -> Self {
        let mut starts = [false; 256];
        for key in KEYS {
            starts[usize::from(key[0])] = true;
        }
        Self { starts }
    }
}

impl Keys {
    /// Whether a line outside a list can be of a format known here.
    pub fn may_matter(&self, line: &[u8]) -> bool {
        if line.trim_ascii_start().starts_with(b"0x") {
            return true;
        }
        let mut at = 0;
        while at < line.len() {
            if self.starts[usize::from(line[at])] {
                let rest = &line[at..];
                if KEYS.iter().any(|key| rest.starts_with(key)) {
                    return true;
                }
            }
            at += 1;
        }
        false
    }
}

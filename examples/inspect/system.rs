//! Which kernel wrote an input: how it shows its registers depends on that.

use super::subject::Subject;
use super::words::Line;

/// A kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum System {
    /// Linux, or not said.
    #[default]
    Linux,
    /// FreeBSD and its kin.
    FreeBsd,
    /// OpenBSD.
    OpenBsd,
    /// NetBSD.
    NetBsd,
    /// Windows.
    Windows,
}

impl System {
    /// The kernel whose version line this is: `OpenBSD 6.5 (GENERIC.MP) #3: ..`.
    pub fn of_version(line: &Line<'_>) -> Option<Self> {
        let of = |name: &str| {
            let version = line.after(name).and_then(|rest| rest.bytes().next());
            version.is_some_and(|byte| byte.is_ascii_digit())
        };
        if of("FreeBSD ") || line.text.contains("The FreeBSD Project") {
            Some(Self::FreeBsd)
        } else if of("OpenBSD ") {
            Some(Self::OpenBsd)
        } else if of("NetBSD ") {
            Some(Self::NetBsd)
        } else {
            None
        }
    }

    /// The kernel in a virtual machine: VirtualBox writes `Guest OS type: 'OpenBSD_64'`.
    pub fn of_guest(line: &Line<'_>) -> Option<Self> {
        let name = line.after("Guest OS type: '")?;
        let known = [
            ("FreeBSD", Self::FreeBsd),
            ("OpenBSD", Self::OpenBsd),
            ("NetBSD", Self::NetBsd),
            ("Windows", Self::Windows),
        ];
        let mut known = known.iter().filter(|(start, _)| name.starts_with(start));
        Some(known.next().map_or(Self::Linux, |(_, system)| *system))
    }

    /// The kernel that alone says so about `subject`.
    pub fn of_words(subject: Subject, text: &str) -> Option<Self> {
        match subject {
            Subject::BsdTool if text.contains("memconfig") => Some(Self::OpenBsd),
            Subject::BsdWithout | Subject::BsdTool => Some(Self::FreeBsd),
            Subject::TooMany => Some(Self::NetBsd),
            Subject::Found if text.contains(" var ranges") => Some(Self::OpenBsd),
            Subject::Found => Some(Self::FreeBsd),
            Subject::Off if text.contains("not enabled by BIOS") => Some(Self::OpenBsd),
            Subject::Off if text.contains("supports MTRRs but") => Some(Self::FreeBsd),
            Subject::Inconsistent if text.contains("KiInitializeMTRR") => Some(Self::Windows),
            _ => None,
        }
    }

    /// What to paste for the registers, where the input has none of them.
    pub fn ask_for(self) -> &'static str {
        match self {
            Self::Linux => {
                "paste /proc/mtrr, or the whole of `dmesg` (Linux 6.5 and later: booted with \
                 `mtrr=debug`)"
            }
            Self::FreeBsd => "paste what `memcontrol list` prints",
            Self::OpenBsd => "paste what `memconfig list` prints, run as root",
            Self::NetBsd => {
                "NetBSD has no tool that shows them: paste /proc/mtrr of a Linux started on the \
                 machine"
            }
            Self::Windows => "paste what `!mtrr` prints in WinDbg",
        }
    }
}

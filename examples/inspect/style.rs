//! Colours, or none: the only place that knows escape codes.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How output looks: colours and columns.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether to colour.
    pub colour: bool,
    /// Columns of the terminal.
    pub columns: usize,
}

impl Look {
    /// What standard output is.
    pub fn of_stdout(when: When) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self {
            colour: match when {
                When::Always => true,
                When::Never => false,
                When::Auto => terminal && !no_colour,
            },
            columns: if terminal { columns.clamp(40, 400) } else { 80 },
        }
    }

    /// `text` in `style`.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_string()
        }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// `text` on the colour of a memory type. Letters tell types apart too.
    pub fn on_type(self, memtype: MtrrType, text: &str) -> String {
        self.paint(type_style(memtype), text)
    }

    /// `text` in the colour of a severity.
    pub fn severity(self, word: &str, text: &str) -> String {
        let colour = match word {
            "error" => AnsiColor::Red,
            "warning" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        self.paint(Style::new().bold().fg_color(Some(colour.into())), text)
    }

    /// Less important text.
    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }
}

/// Black or white letters on a colour per type.
fn type_style(memtype: MtrrType) -> Style {
    let (fore, back) = match memtype.defined() {
        Some(MemType::WriteBack) => (AnsiColor::Black, AnsiColor::Green),
        Some(MemType::Uncachable) => (AnsiColor::White, AnsiColor::Blue),
        Some(MemType::WriteCombining) => (AnsiColor::Black, AnsiColor::Yellow),
        Some(MemType::WriteThrough) => (AnsiColor::Black, AnsiColor::Cyan),
        Some(MemType::WriteProtected) => (AnsiColor::Black, AnsiColor::Magenta),
        None => (AnsiColor::White, AnsiColor::Red),
    };
    Style::new()
        .fg_color(Some(fore.into()))
        .bg_color(Some(back.into()))
}

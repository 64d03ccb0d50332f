//! Pages as the kernel writes them to the serial port.

use super::draw::{self, Ink};
use super::picture::Picture;
use embedded_graphics::prelude::Size;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Page {
        ink: Ink,
        headline: String,
        text: String,
        foot: String,
    },
    Code {
        content: String,
        text: String,
    },
}

impl Shown {
    /// All pages of a log that are complete.
    pub fn all(log: &str) -> Vec<Self> {
        let mut pages = Vec::new();
        let mut page = None;
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            if let Some(more) = line.strip_prefix("| ") {
                let (Some(Self::Page { text, .. }) | Some(Self::Code { text, .. })) = &mut page
                else {
                    panic!("{more:?} belongs to no page");
                };
                text.push_str(more);
                text.push('\n');
            } else if let Some(end) = line.strip_prefix("screen: foot") {
                let mut done = page.take().expect("a page ends after it began");
                if let Self::Page { foot, .. } = &mut done {
                    *foot = end.trim_start().into();
                }
                pages.push(done);
            } else if let Some(content) = line.strip_prefix("screen: code ") {
                page = Some(Self::Code {
                    content: content.into(),
                    text: String::new(),
                });
            } else if let Some(head) = line.strip_prefix("screen: ") {
                let (ink, headline) = head.split_once(' ').expect("an ink and a headline");
                page = Some(Self::Page {
                    ink: ink_named(ink),
                    headline: headline.into(),
                    text: String::new(),
                    foot: String::new(),
                });
            }
        }
        pages
    }

    pub fn headline(&self) -> &str {
        match self {
            Self::Page { headline, .. } => headline,
            Self::Code { .. } => "(code)",
        }
    }

    pub fn ink(&self) -> Option<Ink> {
        match self {
            Self::Page { ink, .. } => Some(*ink),
            Self::Code { .. } => None,
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Page { text, .. } | Self::Code { text, .. } => text,
        }
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Code { content, .. } => Some(content),
            Self::Page { .. } => None,
        }
    }

    /// The page as it has to look on a picture of this size. Of a code, not the code: only what it is drawn on is known here.
    pub fn drawn(&self, size: Size) -> Option<Picture> {
        let Self::Page {
            ink,
            headline,
            text,
            foot,
        } = self
        else {
            return None;
        };
        let mut picture = Picture::new(size);
        let page = draw::Page {
            ink: *ink,
            headline,
            text,
            foot,
        };
        draw::page(&mut picture, &page);
        Some(picture)
    }
}

fn ink_named(name: &str) -> Ink {
    let all = [Ink::Black, Ink::White, Ink::Green, Ink::Amber, Ink::Red];
    all.into_iter()
        .find(|ink| format!("{ink:?}") == name)
        .unwrap_or_else(|| panic!("{name:?} is no ink"))
}

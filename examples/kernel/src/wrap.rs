//! Text in lines of a given width, broken between words.

use core::fmt::{self, Write};

/// Writes `text`, broken so that no line is longer than `width`, into `to`; later lines of a broken one are indented by two.
pub fn into(to: &mut impl Write, width: usize, text: fmt::Arguments) -> fmt::Result {
    let mut wrapped = Wrapped {
        to,
        width,
        column: 0,
    };
    wrapped.write_fmt(text)?;
    wrapped.to.write_char('\n')
}

struct Wrapped<'a, W> {
    to: &'a mut W,
    width: usize,
    column: usize,
}

impl<W: Write> Write for Wrapped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A piece ends behind a space or a line; one that does not fit begins the next line.
        for piece in text.split_inclusive([' ', '\n']) {
            let word = piece.trim_end();
            if self.column > 2 && self.column + word.len() > self.width {
                self.to.write_str("\n  ")?;
                self.column = 2;
            }
            self.to.write_str(piece)?;
            self.column = if piece.ends_with('\n') {
                0
            } else {
                self.column + piece.len()
            };
        }
        Ok(())
    }
}

//! What a page looks like, on any surface: the headline in a band one can read from a metre away, the text below it, or a QR code
//! with text beside it.
//!
//! Plain drawing, without this kernel: `tests/screen.rs` draws the same pages and compares them with what is on the screen.

use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::{FONT_6X10, FONT_8X13, FONT_9X18_BOLD, FONT_10X20};
use embedded_graphics::pixelcolor::raw::RawU8;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::Rectangle;
use embedded_graphics::text::{Baseline, Text};

/// The colours in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Black,
    White,
    Green,
    Amber,
    Red,
}

impl PixelColor for Ink {
    type Raw = RawU8;
}

/// Somewhere to draw: points of one of the inks, and lines of text.
pub trait Surface: DrawTarget<Color = Ink, Error = core::convert::Infallible> {
    /// Characters in a line, and lines.
    fn text_size(&self) -> (usize, usize);

    /// Writes one line, white on black, from a column on; what does not fit is left out.
    fn line(&mut self, column: usize, row: usize, text: &str);
}

/// One page.
pub struct Page<'a> {
    /// Colour of the band.
    pub ink: Ink,
    pub headline: &'a str,
    pub text: &'a str,
    pub foot: &'a str,
}

/// Part of the height that the band takes.
const BAND: u32 = 4;

/// Lines of text that fit on a page below the band, the foot apart.
pub fn rows(surface: &impl Surface) -> usize {
    let (_, rows) = surface.text_size();
    rows - first_row(rows) - 2
}

/// First row below the band.
fn first_row(rows: usize) -> usize {
    rows.div_ceil(BAND as usize) + 1
}

/// Draws a page. Lines that do not fit are left out.
pub fn page(surface: &mut impl Surface, page: &Page<'_>) {
    let Ok(()) = surface.clear(Ink::Black);
    headline(surface, page.ink, page.headline);
    let (_, rows) = surface.text_size();
    let first = first_row(rows);
    for (row, text) in (first..rows - 1).zip(page.text.lines()) {
        surface.line(1, row, text);
    }
    surface.line(1, rows - 1, page.foot);
}

/// A coloured band over the whole width, and letters as large as fit in it.
fn headline(surface: &mut impl Surface, ink: Ink, text: &str) {
    let whole = surface.bounding_box().size;
    let band = Size::new(whole.width, whole.height / BAND);
    let Ok(()) = surface.fill_solid(&Rectangle::new(Point::zero(), band), ink);
    let font = if whole.height > 200 {
        &FONT_9X18_BOLD
    } else {
        &FONT_6X10
    };
    let wide = (font.character_size.width * text.len() as u32).max(1);
    let factor = (whole.width / wide)
        .min(band.height / font.character_size.height)
        .max(1);
    let left = whole.width.saturating_sub(wide * factor) / 2;
    let top = (band
        .height
        .saturating_sub(font.character_size.height * factor))
        / 2;
    let letters = if ink == Ink::Amber {
        Ink::Black
    } else {
        Ink::White
    };
    let mut enlarged = Enlarged {
        surface,
        factor,
        origin: Point::new(left as i32, top as i32),
    };
    let style = MonoTextStyle::new(font, letters);
    let Ok(_) = Text::with_baseline(text, Point::zero(), style, Baseline::Top).draw(&mut enlarged);
}

/// The font for text, and how much larger it is drawn.
#[derive(Clone, Copy)]
pub struct Letters {
    font: &'static MonoFont<'static>,
    factor: u32,
}

impl Letters {
    /// The largest of which 80 columns and 25 rows fit.
    pub fn fitting(size: Size) -> Self {
        let whole = |font: &MonoFont| {
            let cell = font.character_size;
            (size.width / (80 * cell.width)).min(size.height / (25 * cell.height))
        };
        let factor = whole(&FONT_10X20);
        if factor > 0 {
            return Self {
                font: &FONT_10X20,
                factor,
            };
        }
        Self {
            font: &FONT_8X13,
            factor: whole(&FONT_8X13).max(1),
        }
    }

    /// Columns and rows on a surface of this size.
    pub fn grid(self, size: Size) -> (usize, usize) {
        let cell = self.cell();
        (
            (size.width / cell.width) as usize,
            (size.height / cell.height) as usize,
        )
    }

    fn cell(self) -> Size {
        self.font.character_size * self.factor
    }

    /// Draws a line of text, from a place on that is counted in characters.
    pub fn draw(
        self,
        surface: &mut impl DrawTarget<Color = Ink, Error = core::convert::Infallible>,
        (column, row): (usize, usize),
        text: &str,
    ) {
        let cell = self.cell();
        let mut enlarged = Enlarged {
            surface,
            factor: self.factor,
            origin: Point::new(
                column as i32 * cell.width as i32,
                row as i32 * cell.height as i32,
            ),
        };
        let style = MonoTextStyle::new(self.font, Ink::White);
        let Ok(_) =
            Text::with_baseline(text, Point::zero(), style, Baseline::Top).draw(&mut enlarged);
    }
}

/// A QR code at the left, as large as fits, and text to its right. `dark` tells the modules of a code with `modules` to a side.
///
/// The standard wants a margin of four modules; false when not even one point a module fits with it.
pub fn code(
    surface: &mut impl Surface,
    modules: u32,
    dark: impl Fn(u32, u32) -> bool,
    text: &str,
) -> bool {
    const MARGIN: u32 = 4;
    let Ok(()) = surface.clear(Ink::Black);
    let whole = surface.bounding_box().size;
    let side = modules + 2 * MARGIN;
    let point = whole.height.min(whole.width) / side;
    if point == 0 {
        return false;
    }
    let paper = Rectangle::new(Point::zero(), Size::new_equal(side * point));
    let Ok(()) = surface.fill_solid(&paper, Ink::White);
    for y in 0..modules {
        for x in (0..modules).filter(|&x| dark(x, y)) {
            let at = Point::new(((x + MARGIN) * point) as i32, ((y + MARGIN) * point) as i32);
            let Ok(()) =
                surface.fill_solid(&Rectangle::new(at, Size::new_equal(point)), Ink::Black);
        }
    }
    let (columns, rows) = surface.text_size();
    let left = (side * point) as usize * columns / whole.width as usize + 2;
    for (row, text) in (1..rows).zip(text.lines()) {
        surface.line(left, row, text);
    }
    true
}

/// Another target, every point of which is a square of `factor` points.
struct Enlarged<'a, T> {
    surface: &'a mut T,
    factor: u32,
    origin: Point,
}

impl<T: DrawTarget> Dimensions for Enlarged<'_, T> {
    fn bounding_box(&self) -> Rectangle {
        let whole = self.surface.bounding_box().size;
        Rectangle::new(Point::zero(), whole / self.factor)
    }
}

impl<T: DrawTarget> DrawTarget for Enlarged<'_, T> {
    type Color = T::Color;
    type Error = T::Error;

    fn draw_iter<I: IntoIterator<Item = Pixel<T::Color>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), T::Error> {
        for Pixel(at, ink) in pixels {
            let corner = self.origin + at * self.factor as i32;
            let square = Rectangle::new(corner, Size::new_equal(self.factor));
            self.surface.fill_solid(&square, ink)?;
        }
        Ok(())
    }
}

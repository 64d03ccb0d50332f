//! Pictures: of the screen, and drawn here.

use super::draw::{Ink, Letters, Surface};
use embedded_graphics::prelude::*;
use std::convert::Infallible;

#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    size: Size,
    points: Vec<Ink>,
}

impl Picture {
    pub fn new(size: Size) -> Self {
        let points = vec![Ink::Black; (size.width * size.height) as usize];
        Self { size, points }
    }

    /// Of a binary PPM file. A colour that the kernel does not use is an error.
    pub fn read(file: &[u8]) -> Self {
        let mut rest = file;
        let mut number = || {
            let start = rest.iter().position(u8::is_ascii_digit).expect("a number");
            rest = &rest[start..];
            let end = rest
                .iter()
                .position(u8::is_ascii_whitespace)
                .expect("a space");
            let digits = std::str::from_utf8(&rest[..end]).expect("digits");
            rest = &rest[end..];
            digits.parse::<u32>().expect("a number")
        };
        assert!(file.starts_with(b"P6"), "another format than PPM");
        number(); // the 6
        let (width, height) = (number(), number());
        assert_eq!(number(), 255, "bits of a colour");
        let points: Vec<Ink> = rest[1..].chunks_exact(3).map(ink).collect();
        assert_eq!(points.len(), (width * height) as usize, "a whole picture");
        Self {
            size: Size::new(width, height),
            points,
        }
    }

    pub fn ink(&self, x: u32, y: u32) -> Ink {
        self.points[(y * self.size.width + x) as usize]
    }

    /// Where this picture is not the other one.
    pub fn differences(&self, other: &Self) -> Vec<Point> {
        assert_eq!(self.size, other.size, "another size");
        let width = self.size.width as usize;
        let pairs = self.points.iter().zip(&other.points).enumerate();
        let unequal = pairs.filter(|(_, (one, other))| one != other);
        unequal
            .map(|(at, _)| Point::new((at % width) as i32, (at / width) as i32))
            .collect()
    }

    /// The content of the QR code in the picture.
    pub fn code(&self) -> String {
        let Size { width, height } = self.size;
        decode(width, height, |x, y| self.ink(x, y) == Ink::White)
    }
}

/// The content of the QR code among these points, read by a decoder that shares nothing with the kernel's encoder.
pub fn decode(width: u32, height: u32, light: impl Fn(u32, u32) -> bool) -> String {
    let grey = |x, y| if light(x as u32, y as u32) { 255 } else { 0 };
    let (width, height) = (width as usize, height as usize);
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, grey);
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1, "codes in the picture");
    grids[0].decode().expect("it can be read").1
}

fn ink(colour: &[u8]) -> Ink {
    match colour {
        [0, 0, 0] => Ink::Black,
        [0xff, 0xff, 0xff] => Ink::White,
        [0, 0x80, 0x20] => Ink::Green,
        [0xff, 0xb0, 0] => Ink::Amber,
        [0xc0, 0, 0] => Ink::Red,
        _ => panic!("{colour:x?} is none of the kernel's colours"),
    }
}

impl OriginDimensions for Picture {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for Picture {
    type Color = Ink;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Ink>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        for Pixel(at, ink) in pixels {
            if self.bounding_box().contains(at) {
                self.points[at.y as usize * self.size.width as usize + at.x as usize] = ink;
            }
        }
        Ok(())
    }
}

impl Surface for Picture {
    fn text_size(&self) -> (usize, usize) {
        Letters::fitting(self.size).grid(self.size)
    }

    fn line(&mut self, column: usize, row: usize, text: &str) {
        Letters::fitting(self.size).draw(self, (column, row), text);
    }
}

//! Error text that is made in constants as well as at run time, so that a wrong graph says the same, with the numbers in
//! it, in a compile error and in an `Err`.

use crate::shape::Shape;

/// A text of bounded length, built by `const fn`. What does not fit is cut.
///
/// ```
/// use slabgrad::error::Message;
///
/// const TEXT: Message = Message::new().text("input has ").number(63).text(" features");
/// assert_eq!(TEXT.as_str(), "input has 63 features");
/// ```
#[derive(Clone, Copy)]
pub struct Message {
    bytes: [u8; Message::CAPACITY],
    len: usize,
}

impl Message {
    const CAPACITY: usize = 240;

    /// The empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], len: 0 }
    }

    const fn byte(mut self, byte: u8) -> Self {
        if self.len < Self::CAPACITY {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        self
    }

    /// Adds `text`, which is ASCII; other bytes become `?`.
    #[must_use]
    pub const fn text(mut self, text: &str) -> Self {
        let mut i = 0;
        while i < text.len() {
            let byte = text.as_bytes()[i];
            self = self.byte(if byte.is_ascii() { byte } else { b'?' });
            i += 1;
        }
        self
    }

    /// Adds `number` in decimal.
    #[must_use]
    pub const fn number(mut self, number: usize) -> Self {
        if number >= 10 {
            self = self.number(number / 10);
        }
        self.byte(b'0' + (number % 10) as u8)
    }

    /// Adds `number` in decimal, with its sign.
    #[must_use]
    pub const fn signed(self, number: isize) -> Self {
        let text = if number < 0 { self.text("-") } else { self };
        text.number(number.unsigned_abs())
    }

    /// Adds a number with six significant digits, or whole below 10^9: `0.05`, `1e-9`, `16777216`.
    #[must_use]
    #[allow(clippy::float_cmp)] // Whether it is whole.
    pub const fn decimal(mut self, number: f64) -> Self {
        if number.is_nan() {
            return self.text("NaN");
        }
        if number < 0.0 {
            self = self.text("-");
        }
        let mut size = number.abs();
        if size == f64::INFINITY {
            return self.text("inf");
        }
        if size < 1e9 && size == size as usize as f64 {
            return self.number(size as usize);
        }
        let mut exponent = 0;
        while size >= 10.0 {
            size /= 10.0;
            exponent += 1;
        }
        while size < 1.0 {
            size *= 10.0;
            exponent -= 1;
        }
        let mut digits = (size * 100_000.0 + 0.5) as u32;
        if digits == 1_000_000 {
            digits = 100_000;
            exponent += 1;
        }
        let is_plain = -5 < exponent && exponent < 6;
        // The power of ten that the next digit stands for.
        let mut power = if is_plain { exponent } else { 0 };
        if power < 0 {
            self = self.text("0.");
        }
        let mut leading = -1;
        while leading > power {
            self = self.byte(b'0');
            leading -= 1;
        }
        let mut unit = 100_000;
        while digits > 0 || power >= 0 {
            self = self.byte(b'0' + (digits / unit) as u8);
            digits %= unit;
            unit /= 10;
            if power == 0 && digits > 0 {
                self = self.byte(b'.');
            }
            power -= 1;
        }
        if is_plain { self } else { self.text("e").signed(exponent) }
    }

    /// Adds a shape such as `[16, 64]`.
    #[must_use]
    pub const fn shape(mut self, shape: Shape) -> Self {
        self = self.byte(b'[');
        let mut i = 0;
        while i < shape.rank() {
            if i > 0 {
                self = self.text(", ");
            }
            self = self.number(shape.axis(i));
            i += 1;
        }
        self.byte(b']')
    }

    /// The text.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

impl Default for Message {
    fn default() -> Self {
        Self::new()
    }
}

/// A number in a text, as [`Message::decimal`] writes it: what `core` writes floats with takes 17 KB of a small module.
pub(crate) struct Decimal(pub(crate) f64);

impl core::fmt::Display for Decimal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(Message::new().decimal(self.0).as_str())
    }
}

/// What an error is about: an operation, and the layer's or tensor's name unless that is empty.
pub(crate) const fn subject(op: &str, name: &str) -> Message {
    let text = Message::new().text(op);
    let text = if name.is_empty() { text } else { text.text(" `").text(name).text("`") };
    text.text(": ")
}

/// Why an operation does not accept the shapes or settings that it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ShapeError {
    /// An operand has too few or too many axes.
    Rank {
        /// The operation.
        op: &'static str,
        /// Which operand.
        operand: &'static str,
        /// What it should have, in words.
        expected: &'static str,
        /// The operand's shape.
        found: Shape,
    },
    /// Two lengths that must be equal are not.
    Length {
        /// The operation.
        op: &'static str,
        /// What was found, in words.
        what: &'static str,
        /// The length that was found.
        found: usize,
        /// What it has to agree with, in words.
        against: &'static str,
        /// The length that was expected.
        expected: usize,
    },
    /// Two shapes do not broadcast to one another.
    Broadcast {
        /// The operation.
        op: &'static str,
        /// The left shape.
        a: Shape,
        /// The right shape.
        b: Shape,
    },
    /// A window is larger than the padded input that it moves over.
    Window {
        /// The operation.
        op: &'static str,
        /// The input's length along the axis.
        input: usize,
        /// The padding on each side.
        padding: usize,
        /// The window's length along the axis, dilation included.
        window: usize,
    },
    /// An operand has no such axis.
    Axis {
        /// The operation.
        op: &'static str,
        /// The axis, as it was given; negative ones count from behind the last.
        axis: isize,
        /// How many axes there are.
        axes: usize,
    },
    /// An axis is named twice.
    RepeatedAxis {
        /// The operation.
        op: &'static str,
        /// The axis, counted from 0.
        axis: usize,
    },
    /// A range does not lie within an axis.
    Range {
        /// The operation.
        op: &'static str,
        /// The axis, counted from 0.
        axis: usize,
        /// The axis' length.
        length: usize,
        /// The first element.
        start: usize,
        /// What follows the last.
        stop: usize,
    },
    /// A setting has a value that it cannot have.
    Setting {
        /// The operation.
        op: &'static str,
        /// The setting and what it must be, in words.
        rule: &'static str,
        /// The value that it has.
        found: f64,
    },
}

impl ShapeError {
    /// The error as text. `name` is the layer's or tensor's name, or empty.
    #[must_use]
    pub const fn message(&self, name: &str) -> Message {
        let op = match self {
            Self::Rank { op, .. }
            | Self::Length { op, .. }
            | Self::Broadcast { op, .. }
            | Self::Window { op, .. }
            | Self::Axis { op, .. }
            | Self::RepeatedAxis { op, .. }
            | Self::Range { op, .. }
            | Self::Setting { op, .. } => op,
        };
        let text = subject(op, name);
        match *self {
            Self::Rank { operand, expected, found, .. } => {
                text.text(operand).text(" has shape ").shape(found).text(", expected ").text(expected)
            }
            Self::Length { what, found, against, expected, .. } => {
                text.text(what).text(" ").number(found).text(", ").text(against).text(" ").number(expected)
            }
            Self::Broadcast { a, b, .. } => {
                text.text("shapes ").shape(a).text(" and ").shape(b).text(" do not broadcast to one another")
            }
            Self::Window { input, padding, window, .. } => text
                .text("a window of ")
                .number(window)
                .text(" does not fit an input of ")
                .number(input)
                .text(" with padding ")
                .number(padding)
                .text(" on each side"),
            Self::Axis { axis, axes, .. } => {
                text.text("there is no axis ").signed(axis).text(", the number of axes is ").number(axes)
            }
            Self::RepeatedAxis { axis, .. } => text.text("axis ").number(axis).text(" is named twice"),
            Self::Range { axis, length, start, stop, .. } => text
                .text("the range ")
                .number(start)
                .text("..")
                .number(stop)
                .text(" does not lie within axis ")
                .number(axis)
                .text(", whose length is ")
                .number(length),
            Self::Setting { rule, found, .. } => text.text(rule).text(", found ").decimal(found),
        }
    }
}

impl core::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message("").as_str())
    }
}

impl core::error::Error for ShapeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let cases = [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.05, "-0.05"),
            (f64::from(0.1_f32), "0.1"),
            (0.000_12, "0.00012"),
            (1e-9, "1e-9"),
            (5e-324, "4.94066e-324"),
            (12.3456, "12.3456"),
            (16_777_216.0, "16777216"),
            (999_999.6, "1e6"),
            (99_999.96, "100000"),
            (f64::from(f32::MAX), "3.40282e38"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ];
        for (number, text) in cases {
            assert_eq!(Message::new().decimal(number).as_str(), text);
        }
        assert_eq!(Message::new().number(0).text(" ").number(1_234_567).as_str(), "0 1234567");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut text = Message::new();
        for _ in 0..100 {
            text = text.text("abcdef");
        }
        assert_eq!(text.as_str().len(), 240);
    }
}

//! [`Decimal`]: an exact decimal number, read from text digit by digit.
//!
//! A float keeps 15 digits of what a file says; amounts of money need all of them. Left out on purpose:
//! division and rounding (an exact number has no rule for them), and more than 38 digits.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Record;

/// The most digits of a number, and of its fraction.
const DIGITS: u32 = 38;

/// The name under which `serde_json` hands out a value as it is written; other formats take it for the
/// name of a newtype. Were it to change, no number of a JSON file would be read: the tests of files notice.
const AS_WRITTEN: &str = "$serde_json::private::RawValue";

/// An exact decimal number of up to 38 digits, as SQL's `DECIMAL(38)`: an integer, and how many of its
/// digits stand behind the point.
///
/// Keeps the digits of its fraction as they are written (`1.50` is shown as `1.50`), and compares as a
/// number (`1.5 == 1.50`). As a field of a JSON or CSV row it is read from the text and never by way of
/// a float; what has more digits than it can hold is a bad record. JSON may have it as a number or as a
/// string; it is written as a string, which no reader takes for a float.
///
/// ```
/// use slackwater::{Decimal, prelude::*};
///
/// #[derive(serde::Deserialize, Record, Clone)]
/// struct Payment { account: i64, amount: Decimal }
///
/// let sum = |payments: DataStream<Payment>| {
///     // `None` once a sum has more digits than a decimal can hold.
///     payments.key_by(|payment| payment.account).fold(
///         Some(Decimal::default()),
///         |sum: &mut Option<Decimal>, payment| {
///             *sum = sum.and_then(|sum| sum.checked_add(payment.amount));
///         },
///         |sum, other| *sum = sum.zip(other).and_then(|(a, b)| a.checked_add(b)),
///     )
/// };
/// # let _ = sum;
/// ```
#[derive(Record, Clone, Copy, Default)]
pub struct Decimal {
    /// Of at most 38 digits.
    unscaled: i128,
    /// At most 38.
    scale: u32,
}

/// Why a text is no [`Decimal`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecimalError {
    /// It is not a number in the decimal system.
    #[error("`{0}` is no decimal number")]
    Malformed(String),
    /// It is a number of too many digits.
    #[error("`{0}` has more than 38 digits, or more than 38 behind the point")]
    TooManyDigits(String),
}

impl Decimal {
    /// `unscaled` divided by ten to the power of `scale`; `None` beyond 38 digits or a scale of 38.
    #[must_use]
    pub fn new(unscaled: i128, scale: u32) -> Option<Self> {
        let fits = unscaled.unsigned_abs() < power(DIGITS).unsigned_abs() && scale <= DIGITS;
        fits.then_some(Self { unscaled, scale })
    }

    /// All digits, without the point.
    #[must_use]
    pub const fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// How many digits stand behind the point.
    #[must_use]
    pub const fn scale(self) -> u32 {
        self.scale
    }

    /// The exact sum, with the longer of the two fractions; `None` if it has too many digits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let digits = |n: Self| n.unscaled.checked_mul(power(scale - n.scale));
        Self::new(digits(self)?.checked_add(digits(other)?)?, scale)
    }

    /// The exact difference; `None` if it has too many digits.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(Self { unscaled: -other.unscaled, ..other })
    }

    /// The same number without zeros at the end of its fraction.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        while self.scale > 0 && self.unscaled % 10 == 0 {
            self.unscaled /= 10;
            self.scale -= 1;
        }
        self
    }

    /// The whole number below, and the digits that are above it.
    fn floor(self) -> (i128, i128) {
        let one = power(self.scale);
        (self.unscaled.div_euclid(one), self.unscaled.rem_euclid(one))
    }
}

/// Ten to the power of `n`, which is at most 38: that fits.
const fn power(n: u32) -> i128 {
    10_i128.pow(n)
}

impl FromStr for Decimal {
    type Err = DecimalError;

    /// Reads digits with an optional sign, fraction and exponent: `-12.50`, `.5`, `1e3`.
    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let malformed = || DecimalError::Malformed(text.to_owned());
        let too_many = || DecimalError::TooManyDigits(text.to_owned());
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, whole(exponent).ok_or_else(malformed)?),
            None => (text, 0),
        };
        let (is_negative, digits) = match number.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, number.strip_prefix('+').unwrap_or(number)),
        };
        let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if before.len() + behind.len() == 0 || !is_number(before) || !is_number(behind) {
            return Err(malformed());
        }
        let mut unscaled = 0_i128;
        for byte in before.bytes().chain(behind.bytes()) {
            let digit = i128::from(byte - b'0');
            let more = unscaled.checked_mul(10).and_then(|tens| tens.checked_add(digit));
            unscaled = more.ok_or_else(too_many)?;
        }
        let behind = i64::try_from(behind.len()).unwrap_or(i64::MAX);
        let mut scale = behind.saturating_sub(exponent);
        if scale < 0 {
            let zeros = u32::try_from(-scale).ok().filter(|zeros| *zeros <= DIGITS);
            let shifted = match zeros {
                _ if unscaled == 0 => Some(0),
                Some(zeros) => unscaled.checked_mul(power(zeros)),
                None => None,
            };
            (unscaled, scale) = (shifted.ok_or_else(too_many)?, 0);
        }
        let unscaled = if is_negative { -unscaled } else { unscaled };
        let scale = u32::try_from(scale).map_err(|_| too_many())?;
        Self::new(unscaled, scale).ok_or_else(too_many)
    }
}

/// An exponent; one beyond 64 bits is as good as the largest.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Not the least number: its negation would not fit.
    let far = if text.starts_with('-') { -i64::MAX } else { i64::MAX };
    Some(text.parse().unwrap_or(far).max(-i64::MAX))
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, one) = (self.unscaled.unsigned_abs(), power(self.scale).unsigned_abs());
        let text = match self.scale {
            0 => digits.to_string(),
            scale => format!("{}.{:0>width$}", digits / one, digits % one, width = scale as usize),
        };
        f.pad_integral(self.unscaled >= 0, "", &text)
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<i64> for Decimal {
    fn from(whole: i64) -> Self {
        Self { unscaled: whole.into(), scale: 0 }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((a, a_above), (b, b_above)) = (self.floor(), other.floor());
        let scale = self.scale.max(other.scale);
        // What is above a whole number is less than one: at a scale of 38 it still fits.
        let above = |digits: i128, of: &Self| digits * power(scale - of.scale);
        a.cmp(&b).then_with(|| above(a_above, self).cmp(&above(b_above, other)))
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { unscaled, scale } = self.normalized();
        (unscaled, scale).hash(state);
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AS_WRITTEN, AnyText)
    }
}

/// Takes a decimal from whatever a format has that keeps its digits.
struct AnyText;

impl<'de> Visitor<'de> for AnyText {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal number whose digits are all there")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Decimal, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Decimal, E> {
        Ok(whole.into())
    }

    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Decimal, E> {
        Ok(Decimal { unscaled: whole.into(), scale: 0 })
    }

    /// A value of JSON as it is written: a number, or a string with one.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Decimal, A::Error> {
        let written = <Box<RawValue>>::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let text = written.get();
        if text.starts_with('"') {
            let text: String = serde_json::from_str(text).map_err(de::Error::custom)?;
            return self.visit_str(&text);
        }
        self.visit_str(text)
    }

    /// A cell, or a value of a format that has decimals as strings.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, cell: D) -> Result<Decimal, D::Error> {
        cell.deserialize_str(self)
    }
}

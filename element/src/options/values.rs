//! How values of options are written and read.

use std::time::Duration;

use crate::ByteSize;

/// A type that options can have.
pub trait OptionValue: Sized {
    /// What a value looks like, for messages: "a duration such as `10s`".
    const EXPECTED: &'static str;

    /// Reads a value; `None` if it is none.
    fn parse(text: &str) -> Option<Self>;

    /// Writes a value as a person would, in the greatest unit that leaves no rest (`128mb`, `10min`);
    /// [`OptionValue::parse`] reads it.
    fn format(&self) -> String;

    /// Whether `none` is one of the values, so that an optional one without a value is `unset`.
    fn has_none() -> bool {
        false
    }
}

macro_rules! plain_values {
    ($($type:ty: $expected:literal;)*) => {$(
        impl OptionValue for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }

            fn format(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain_values! {
    u32: "a whole number";
    u64: "a whole number";
    f64: "a number";
    bool: "`true` or `false`";
    String: "text";
}

impl<T: OptionValue> OptionValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "unset" => Some(None),
            "none" if !T::has_none() => Some(None),
            text => T::parse(text).map(Some),
        }
    }

    fn format(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), T::format)
    }
}

/// A quantity in the greatest of its units that leaves no rest; without a unit if it is nothing.
fn in_greatest_unit(quantity: u128, units: &[(u128, &str)]) -> String {
    let whole = units.iter().find(|(size, _)| quantity != 0 && quantity.is_multiple_of(*size));
    whole.map_or_else(|| quantity.to_string(), |(size, unit)| format!("{}{unit}", quantity / size))
}

/// Splits a number from the unit behind it.
fn number_and_unit<N: std::str::FromStr>(text: &str) -> Option<(N, String)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim().to_lowercase()))
}

impl OptionValue for Duration {
    const EXPECTED: &'static str = "a duration such as `10s`, `500ms` or `1min`";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit::<u128>(text)?;
        let nanos_per_unit = match unit.as_str() {
            "ns" => 1,
            "us" => 1_000,
            "" | "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        let nanos = number.checked_mul(nanos_per_unit)?;
        let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
        Some(Self::new(seconds, u32::try_from(nanos % 1_000_000_000).ok()?))
    }

    fn format(&self) -> String {
        in_greatest_unit(
            self.as_nanos(),
            &[
                (86_400_000_000_000, "d"),
                (3_600_000_000_000, "h"),
                (60_000_000_000, "min"),
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "us"),
                (1, "ns"),
            ],
        )
    }
}

impl OptionValue for ByteSize {
    const EXPECTED: &'static str = "a size in bytes such as `256mb` or `64k`";

    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit::<u64>(text)?;
        let shift = match unit.as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return None,
        };
        number.checked_mul(1 << shift).map(Self)
    }

    fn format(&self) -> String {
        let units = [(1 << 40, "tb"), (1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
        in_greatest_unit(self.0.into(), &units)
    }
}

/// Makes an enum of option values, each with its spelling.
macro_rules! named_values {
    ($(#[$doc:meta])* $name:ident: $expected:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $crate::options::OptionValue for $name {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Option<Self> {
                match text.trim().to_lowercase().as_str() {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn has_none() -> bool {
                [$($text),*].contains(&"none")
            }

            fn format(&self) -> String {
                match self { $(Self::$variant => $text.to_owned(),)* }
            }
        }
    };
}
pub(crate) use named_values;

/// Environment variables with our prefix that are no options.
pub(super) const RESERVED_VARIABLES: &[&str] =
    &["CONF_FILE", "ROLE", "CLUSTER", "STORE", "BUILD_CACHE"];

/// An option's key as an environment variable spells it, without the prefix.
pub(super) fn variable_of(key: &str) -> String {
    key.to_uppercase().replace(['.', '-'], "_")
}

/// The tables of a TOML text as keys with dots, values as text.
pub(super) fn flatten(table: &toml::Table) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => flat.extend(
                flatten(inner).into_iter().map(|(rest, text)| (format!("{key}.{rest}"), text)),
            ),
            toml::Value::String(text) => flat.push((key.clone(), text.clone())),
            other => flat.push((key.clone(), other.to_string())),
        }
    }
    flat
}

/// The option whose key is nearest to what was written, if any is near.
pub(super) fn nearest_key(written: &str) -> Option<&'static str> {
    let written = written.to_lowercase().replace('_', ".");
    super::all_options()
        .iter()
        .map(|option| (distance(&written, option.key), option.key))
        .min()
        .filter(|(distance, key)| *distance * 3 <= key.len())
        .map(|(_, key)| key)
}

/// Edits that turn one text into the other (Levenshtein), dots and dashes taken alike.
fn distance(a: &str, b: &str) -> usize {
    let plain = |text: &str| text.replace('-', ".").into_bytes();
    let (a, b) = (plain(a), plain(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            left = (left + 1).min(above + 1).min(diagonal + usize::from(x != y));
            next.push(left);
            diagonal = *above;
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

//! Options: one typed table, and the values that a program, a file or the environment set.
//!
//! Each option is a constant in [`table`] with key, default and doc. A [`Configuration`] is filled
//! from a TOML file, then from the environment (`SLACKWATER_` and the key in capitals, dots and
//! dashes as underscores), then in code; the later wins. An unknown key, a value that does not parse
//! and a contradiction are errors that name the key.

pub mod table;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

pub use values::OptionValue;

/// An option: its key, default and doc.
#[derive(Debug)]
pub struct ConfigOption<T> {
    /// The key, as files and the environment spell it.
    pub key: &'static str,
    /// The value if nobody sets one.
    pub default: fn() -> T,
    /// What it does, with its unit.
    pub doc: &'static str,
}

/// Why an option cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No option has this key.
    #[error("unknown option `{key}`{}", nearest.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// The key as written.
        key: String,
        /// An option whose key is spelled much like it.
        nearest: Option<&'static str>,
    },
    /// The value does not parse.
    #[error("option `{key}`: `{value}` is not {expected}")]
    Value {
        /// The option.
        key: String,
        /// The value as written.
        value: String,
        /// What is expected.
        expected: &'static str,
    },
    /// Options that contradict each other, or a value that is not allowed.
    #[error("option `{key}`: {reason}")]
    Refused {
        /// The option.
        key: String,
        /// Why.
        reason: String,
    },
    /// The file of options cannot be read.
    #[error("cannot read options from `{path}`: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Values set for options, by key. Cheap to clone while small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    values: BTreeMap<&'static str, String>,
}

impl Configuration {
    /// Nothing set: every option has its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option.
    pub fn set<T: OptionValue>(&mut self, option: &ConfigOption<T>, value: T) -> &mut Self {
        self.values.insert(option.key, value.format());
        self
    }

    /// Takes back what was set for an option.
    pub fn unset<T>(&mut self, option: &ConfigOption<T>) -> &mut Self {
        self.values.remove(option.key);
        self
    }

    /// Whether an option has been set.
    #[must_use]
    pub fn is_set<T>(&self, option: &ConfigOption<T>) -> bool {
        self.values.contains_key(option.key)
    }

    /// The value of an option, or its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Value`] if what was set does not parse; values set through a checked way do.
    pub fn get<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<T, ConfigError> {
        match self.values.get(option.key) {
            None => Ok((option.default)()),
            Some(text) => T::parse(text).ok_or_else(|| ConfigError::Value {
                key: option.key.to_owned(),
                value: text.clone(),
                expected: T::EXPECTED,
            }),
        }
    }

    /// Sets an option by key and text, as a file or the command line does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for an unknown key or a value that does not parse.
    pub fn set_text(&mut self, key: &str, value: &str) -> Result<&mut Self, ConfigError> {
        let option = all_options().iter().find(|option| option.key == key).ok_or_else(|| {
            ConfigError::Unknown { key: key.to_owned(), nearest: values::nearest_key(key) }
        })?;
        if !(option.parses)(value) {
            return Err(ConfigError::Value {
                key: key.to_owned(),
                value: value.to_owned(),
                expected: option.expected,
            });
        }
        self.values.insert(option.key, value.to_owned());
        Ok(self)
    }

    /// Sets what a TOML text says; tables nest keys by dots.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the key.
    pub fn merge_toml(&mut self, text: &str) -> Result<&mut Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::File { path: "toml".to_owned(), reason: error.message().to_owned() }
        })?;
        for (key, value) in values::flatten(&table) {
            self.set_text(&key, &value)?;
        }
        Ok(self)
    }

    /// Sets what a TOML file says.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the file or the key.
    pub fn merge_file(&mut self, path: &Path) -> Result<&mut Self, ConfigError> {
        let failed =
            |reason: String| ConfigError::File { path: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        self.merge_toml(&text).map_err(|error| match error {
            ConfigError::File { reason, .. } => failed(reason),
            other => other,
        })
    }

    /// Sets what environment variables say: those that begin with `SLACKWATER_`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the variable's key.
    pub fn merge_environment(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<&mut Self, ConfigError> {
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix("SLACKWATER_") else { continue };
            if values::RESERVED_VARIABLES.contains(&rest) {
                continue;
            }
            match all_options().iter().find(|option| values::variable_of(option.key) == rest) {
                Some(option) => self.set_text(option.key, &value)?,
                None => {
                    let key = rest.to_lowercase().replace('_', ".");
                    return Err(ConfigError::Unknown {
                        nearest: values::nearest_key(&key),
                        key: name,
                    });
                }
            };
        }
        Ok(self)
    }

    /// What has been set, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(key, value)| (*key, value.as_str()))
    }
}

/// An option without its type: what a listing needs.
#[derive(Debug, Clone, Copy)]
pub struct OptionEntry {
    /// The key.
    pub key: &'static str,
    /// The default, as text.
    pub default: fn() -> String,
    /// What it does.
    pub doc: &'static str,
    /// What a value looks like.
    pub expected: &'static str,
    parses: fn(&str) -> bool,
}

/// All options, by key.
#[must_use]
pub fn all_options() -> &'static [OptionEntry] {
    table::ALL
}

//! [`Value::to_json`]: a value as JSON text, for dumps that people and scripts read.
//!
//! Left out on purpose: reading it back. A dump is for eyes; restores read the bytes.

use std::fmt::Write;

use crate::Value;

impl Value {
    /// This value as one line of JSON.
    ///
    /// Structs are objects, tuples and lists arrays, optional values themselves or `null`,
    /// timestamps milliseconds, maps objects if all keys are text and arrays of pairs otherwise. A
    /// variant without fields is its name, another one an object `{"Name": fields}`. Floats that JSON
    /// lacks are the texts `NaN`, `Infinity` and `-Infinity`; serde values are their bytes in hex.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_value(self, &mut out);
        out
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Unit | Value::Option(None) => out.push_str("null"),
        Value::Bool(flag) => push(out, flag),
        Value::Unsigned(number) => push(out, number),
        Value::Signed(number) => push(out, number),
        Value::Timestamp(millis) => push(out, millis),
        Value::Float(float) => write_float(*float, out),
        Value::Char(c) => write_text(c.encode_utf8(&mut [0; 4]), out),
        Value::String(text) => write_text(text, out),
        Value::Option(Some(inner)) => write_value(inner, out),
        Value::List(values) => write_list(values.iter(), out),
        Value::Map(pairs) => write_map(pairs, out),
        Value::Struct { fields, .. } => write_fields(fields, out),
        Value::Enum { variant, fields, .. } if fields.is_empty() => write_text(variant, out),
        Value::Enum { variant, fields, .. } => {
            out.push('{');
            write_text(variant, out);
            out.push(':');
            write_fields(fields, out);
            out.push('}');
        }
        Value::Opaque(bytes) => {
            out.push('"');
            bytes.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
            out.push('"');
        }
    }
}

fn push(out: &mut String, part: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = write!(out, "{part}");
}

fn write_float(float: f64, out: &mut String) {
    if float.is_finite() {
        // The shortest digits that read back, with an exponent where plain digits would be long.
        push(out, format_args!("{float:?}"));
    } else if float.is_nan() {
        out.push_str("\"NaN\"");
    } else {
        out.push_str(if float > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 32 => push(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_list<'a>(values: impl Iterator<Item = &'a Value>, out: &mut String) {
    out.push('[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_value(value, out);
    }
    out.push(']');
}

fn write_map(pairs: &[(Value, Value)], out: &mut String) {
    let texts = pairs.iter().map(|(key, value)| match key {
        Value::String(text) => Some((text.as_str(), value)),
        _ => None,
    });
    if let Some(texts) = texts.collect::<Option<Vec<_>>>() {
        write_object(texts.into_iter(), out);
        return;
    }
    out.push('[');
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_list([key, value].into_iter(), out);
    }
    out.push(']');
}

/// Named fields are an object; one positional field is itself, more are a list.
fn write_fields(fields: &[(String, Value)], out: &mut String) {
    let positional = fields.iter().enumerate().all(|(i, (name, _))| *name == i.to_string());
    match fields {
        [(_, only)] if positional => write_value(only, out),
        [_, ..] if positional => write_list(fields.iter().map(|(_, value)| value), out),
        _ => write_object(fields.iter().map(|(name, value)| (name.as_str(), value)), out),
    }
}

fn write_object<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut String) {
    out.push('{');
    for (index, (name, value)) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

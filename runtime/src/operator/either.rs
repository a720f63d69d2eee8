//! [`Either`]: a record of one of two inputs, so that both travel through one sorter.
//!
//! Sorting both inputs by one sorter merges them by key (M7), and within a key by timestamp, then by
//! arrival over both.

use element::{CodecError, Key, Record, Schema, SchemaError, Value};

use super::selector::KeySelector;

/// A record of the left or of the right input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// Of the first input.
    Left(A),
    /// Of the second.
    Right(B),
}

/// Written as a pair of options of which one is there.
impl<A: Record, B: Record> Record for Either<A, B> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Left(value) => {
                out.push(1);
                value.encode(out);
                out.push(0);
            }
            Self::Right(value) => {
                out.extend_from_slice(&[0, 1]);
                value.encode(out);
            }
        }
    }

    #[inline]
    fn decode(input: &mut &[u8]) -> Result<Self, CodecError> {
        let left = <Option<A>>::decode(input)?;
        // One tag, where the other value would be: most records have no such.
        match (left, *input) {
            (Some(left), [0, rest @ ..]) => {
                *input = rest;
                Ok(Self::Left(left))
            }
            (None, [1, rest @ ..]) => {
                *input = rest;
                B::decode(input).map(Self::Right)
            }
            _ => Err(CodecError::Tag { what: "Either", found: 0 }),
        }
    }

    fn schema() -> Schema {
        <(Option<A>, Option<B>)>::schema()
    }

    fn from_value(value: Value) -> Result<Self, SchemaError> {
        let wrong = value.mismatch("Either");
        one_of(<(Option<A>, Option<B>)>::from_value(value)?).ok_or(wrong)
    }

    fn estimated_bytes(&self) -> usize {
        match self {
            Self::Left(value) => value.estimated_bytes(),
            Self::Right(value) => value.estimated_bytes(),
        }
    }
}

fn one_of<A, B>(pair: (Option<A>, Option<B>)) -> Option<Either<A, B>> {
    match pair {
        (Some(left), None) => Some(Either::Left(left)),
        (None, Some(right)) => Some(Either::Right(right)),
        _ => None,
    }
}

/// Finds the key of a record of either input.
#[must_use]
pub fn either_key<A, B, K>(
    left: KeySelector<A, K>,
    right: KeySelector<B, K>,
) -> KeySelector<Either<A, B>, K>
where
    A: 'static,
    B: 'static,
    K: Key,
{
    KeySelector::owned(move |value: &Either<A, B>| match value {
        Either::Left(value) => left.key(value),
        Either::Right(value) => right.key(value),
    })
}

#[cfg(test)]
mod tests {
    use element::{decode_exact, encode_to_vec};

    use super::*;

    #[test]
    fn a_record_of_one_input_is_a_pair_of_options_and_a_cut_one_an_error() {
        type Pair = (Option<u16>, Option<String>);
        let ours: [Either<u16, String>; 2] = [Either::Left(300), Either::Right("tide".to_owned())];
        let pairs: [Pair; 2] = [(Some(300), None), (None, Some("tide".to_owned()))];
        for (either, pair) in ours.into_iter().zip(pairs) {
            let bytes = encode_to_vec(&pair);
            assert_eq!(encode_to_vec(&either), bytes);
            assert_eq!(decode_exact::<Either<u16, String>>(&bytes).unwrap(), either);
            for end in 0..bytes.len() {
                assert!(decode_exact::<Either<u16, String>>(&bytes[..end]).is_err(), "{end}");
            }
        }
        let both = encode_to_vec::<Pair>(&(Some(1), Some(String::new())));
        let neither = encode_to_vec::<Pair>(&(None, None));
        for bytes in [both, neither] {
            assert!(decode_exact::<Either<u16, String>>(&bytes).is_err());
        }
    }
}

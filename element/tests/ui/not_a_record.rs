//! A type without the derive cannot travel.

struct Plain;

fn main() {
    element::encode_to_vec(&Plain);
}

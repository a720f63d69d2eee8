//! A float cannot be a key.

fn main() {
    element::key_bytes(&1.5_f64);
}

//! Hostile frames: valid frames of every kind, damaged in sensitive places.

/// A small reproducible random source (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Copies one of `seeds` into `frame`, and damages the copy in up to six places.
pub(crate) fn hostile(seeds: &[Vec<u8>], dice: &mut Dice, frame: &mut Vec<u8>) {
    frame.clear();
    frame.extend(&seeds[dice.below(seeds.len())]);
    for _ in 0..dice.below(7) {
        damage(seeds, dice, frame);
    }
}

fn damage(seeds: &[Vec<u8>], dice: &mut Dice, frame: &mut Vec<u8>) {
    /// Values that often break parsers: extreme lengths, types, protocols, flags.
    const WORDS: [u16; 20] = [
        0, 1, 19, 20, 39, 40, 59, 60, 0x7fff, 0x8000, 0xffff, 0x0800, 0x86dd, 0x8100, 0x88a8,
        0x8864, 0x1100, 0x0021, 0x0057, 0x2000,
    ];
    const BYTES: [u8; 20] = [
        0, 1, 2, 4, 5, 6, 17, 41, 43, 44, 45, 51, 60, 0x0f, 0x40, 0x45, 0x50, 0x60, 0xf0, 0xff,
    ];
    if frame.is_empty() {
        return;
    }
    // Most damage hits the headers.
    let reach = if dice.below(4) == 0 {
        frame.len()
    } else {
        frame.len().min(100)
    };
    let at = dice.below(reach);
    match dice.below(10) {
        0 | 1 => frame[at] ^= 1 << dice.below(8),
        2 => frame[at] = dice.next() as u8,
        3 | 4 => frame[at] = BYTES[dice.below(BYTES.len())],
        5 | 6 => {
            // A wrong length or type; sometimes the difference is small.
            let word = match dice.below(3) {
                0 => frame.len().wrapping_add(dice.below(41)).wrapping_sub(60) as u16,
                _ => WORDS[dice.below(WORDS.len())],
            };
            if let Some(field) = frame.get_mut(at..at + 2) {
                field.copy_from_slice(&word.to_be_bytes());
            }
        }
        7 => frame.truncate(at),
        8 => {
            let other = &seeds[dice.below(seeds.len())];
            frame.truncate(at);
            frame.extend(&other[dice.below(other.len())..]);
        }
        _ => {
            let more = dice.below(40);
            let len = frame.len();
            frame.resize(len + more, dice.next() as u8);
        }
    }
}

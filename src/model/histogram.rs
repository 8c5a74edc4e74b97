//! A log-linear histogram of wait times: 8 buckets an octave, 256 in all, exact sums on merge.
//!
//! ```text
//!   value in ns     0 1 2 3 4 5 6 7 | 8..16 in 8 steps | 16..32 in 8 steps | ...
//!   bucket          0 1 2 3 4 5 6 7 | 8 ............15 | 16 ............23 | ... 255
//! ```
//!
//! Bucket 255 starts at 30 * 2^30 ns (32 s) and holds everything above. A quantile is right to one
//! part in 16 below that.

/// Counts by bucket; only the buckets in use take memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// A bit for each bucket in use: how many lower ones there are is where its count stands.
    used: [u64; 4],
    /// Counts of the buckets in use, ascending.
    counts: Vec<u64>,
}

const STEPS: u64 = 8;
const STEP_BITS: u32 = 3;

fn bucket(value: u64) -> u8 {
    if value < STEPS {
        return value as u8;
    }
    let exponent = 63 - value.leading_zeros();
    let step = (value >> (exponent - STEP_BITS)) - STEPS;
    let index = u64::from(exponent - STEP_BITS + 1) * STEPS + step;
    index.min(255) as u8
}

/// The smallest value of `bucket`.
fn lower_bound(bucket: u8) -> u64 {
    let (octave, step) = (u32::from(bucket) >> STEP_BITS, u64::from(bucket) & (STEPS - 1));
    if octave == 0 { step } else { (STEPS + step) << (octave - 1) }
}

impl Histogram {
    /// Counts one value in ns.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_bucket(bucket(value), 1);
    }

    #[inline]
    fn add_bucket(&mut self, bucket: u8, count: u64) {
        let (word, bit) = (usize::from(bucket / 64), 1 << (bucket % 64));
        let below = |word: u64| word.count_ones() as usize;
        let before: usize = self.used[..word].iter().map(|&word| below(word)).sum();
        let at = before + below(self.used[word] & (bit - 1));
        if self.used[word] & bit == 0 {
            self.used[word] |= bit;
            self.counts.insert(at, count);
        } else if let Some(counted) = self.counts.get_mut(at) {
            *counted = counted.saturating_add(count);
        }
    }

    /// The buckets in use and their counts, ascending.
    fn in_use(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let words = [0, 64, 128, 192].into_iter().zip(self.used);
        let buckets = words.flat_map(|(first, bits)| set_bits(bits).map(move |bit| first + bit));
        buckets.zip(self.counts.iter().copied())
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.in_use() {
            self.add_bucket(bucket, count);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The value below which the share `q` (0 to 1) of all values lies: the middle of its bucket.
    /// `None` when nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        self.in_use().find_map(|(bucket, count)| {
            seen = seen.saturating_add(count);
            (seen >= rank).then(|| middle(bucket))
        })
    }

    /// `(lower bound in ns, count)` of every bucket in use, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.in_use().map(|(bucket, count)| (lower_bound(bucket), count))
    }
}

/// The numbers of the bits that are set, ascending.
fn set_bits(mut bits: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as u8;
        bits &= bits.checked_sub(1)?;
        Some(lowest)
    })
}

fn middle(bucket: u8) -> u64 {
    let lower = lower_bound(bucket);
    match bucket.checked_add(1) {
        Some(next) => lower + (lower_bound(next) - lower) / 2,
        None => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_starts_where_it_says() {
        for b in 0..=255u8 {
            assert_eq!(bucket(lower_bound(b)), b);
            if b > 0 {
                assert_eq!(bucket(lower_bound(b) - 1), b - 1);
            }
        }
        assert_eq!(bucket(u64::MAX), 255);
    }

    #[test]
    fn counts_stand_in_the_order_of_their_buckets_whatever_came_first() {
        let mut histogram = Histogram::default();
        for bucket in [255, 0, 64, 63, 128, 191, 192, 64, 0] {
            histogram.add(lower_bound(bucket));
        }
        let expected = [(0, 2), (63, 1), (64, 2), (128, 1), (191, 1), (192, 1), (255, 1)];
        assert_eq!(histogram.in_use().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn quantiles_are_right_to_one_part_in_sixteen() {
        let mut histogram = Histogram::default();
        for value in 1..=100_000u64 {
            histogram.add(value * 1000);
        }
        for (q, exact) in [(0.5, 5e7), (0.95, 9.5e7), (0.99, 9.9e7)] {
            let got = histogram.quantile(q).unwrap() as f64;
            assert!((got - exact).abs() <= exact / 16.0, "{q}: {got} against {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn merging_is_counting_together() {
        let (mut a, mut b, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in [3, 70, 5_000_000] {
            a.add(value);
            both.add(value);
        }
        for value in [70, 9, u64::MAX] {
            b.add(value);
            both.add(value);
        }
        a.merge(&b);
        assert_eq!(a, both);
    }
}

//! Figures of many measurements: percentiles of latencies, the median and the spread of rounds.

use serde::Serialize;

/// The value below which so many percent of sorted values lie: the nearest rank.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The middle of several rounds, and how far they lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Middle {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Middle {
    /// Nothing can be said of no rounds at all.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Middle> {
        let mut sorted: Vec<f64> = rounds.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Middle { median, least, most })
    }

    /// Half of the distance between the extremes, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.most - self.least) / 2.0 / self.median * 100.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Middle, percentile};

    #[test]
    fn percentile_is_the_value_of_the_nearest_rank() {
        let sorted: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&sorted, 50), 100);
        assert_eq!(percentile(&sorted, 99), 198);
        assert_eq!(percentile(&sorted, 100), 200);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn median_of_rounds_is_the_middle_one_or_between_two() {
        let middle = Middle::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(middle, Middle { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(middle.spread_percent().to_string(), "50");
        assert_eq!(Middle::of([4.0, 1.0, 2.0, 3.0]).unwrap().median.to_string(), "2.5");
        assert_eq!(Middle::of([]), None);
    }

    #[test]
    fn spread_of_nothing_but_zeros_is_none() {
        let middle = Middle::of([0.0, 0.0]).unwrap();
        assert_eq!(middle.spread_percent().to_string(), "0");
    }
}

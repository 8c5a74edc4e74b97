//! How evenly threads with the same job got on. In: operations of each thread. Out: [`Fairness`].

use serde::{Deserialize, Serialize};

/// How evenly the operations are spread over the threads of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index, (sum x)^2 / (n * sum x^2): 1 when all threads did the same number of
    /// operations, 1/n when one did all of them (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    pub jain_index: f64,
    /// Share of the operations of the slowest thread, as a multiple of an equal share.
    pub least_share: f64,
    /// Share of the operations of the fastest thread, as a multiple of an equal share.
    pub most_share: f64,
}

impl Fairness {
    /// Fairness over the operations of each thread; none when nothing was done.
    pub fn of(ops: &[u64]) -> Option<Fairness> {
        let sum: f64 = ops.iter().map(|&n| n as f64).sum();
        let squares: f64 = ops.iter().map(|&n| (n as f64).powi(2)).sum();
        let (least, most) = (ops.iter().min()?, ops.iter().max()?);
        if sum == 0.0 {
            return None;
        }
        let threads = ops.len() as f64;
        Some(Fairness {
            jain_index: sum * sum / (threads * squares),
            least_share: *least as f64 * threads / sum,
            most_share: *most as f64 * threads / sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_threads_are_perfectly_fair_and_a_monopoly_has_one_over_n() {
        let equal = Fairness { jain_index: 1.0, least_share: 1.0, most_share: 1.0 };
        assert_eq!(Fairness::of(&[5, 5, 5, 5]), Some(equal));
        let monopoly = Fairness { jain_index: 0.25, least_share: 0.0, most_share: 4.0 };
        assert_eq!(Fairness::of(&[0, 0, 8, 0]), Some(monopoly));
    }

    #[test]
    fn one_thread_at_three_times_the_other_has_the_index_of_the_formula() {
        let fairness = Fairness::of(&[1, 3]).unwrap();
        assert_eq!(fairness, Fairness { jain_index: 0.8, least_share: 0.5, most_share: 1.5 });
    }

    #[test]
    fn nothing_done_has_no_fairness() {
        assert_eq!(Fairness::of(&[]), None);
        assert_eq!(Fairness::of(&[0, 0]), None);
    }
}

//! Reports of two recordings -> one report, as if one recording held both.
//!
//! In: reports with the same kind of rows, of any machine and any time. Out: the first one, grown by
//! the other. Statistics add up, row by row and stack by stack, by words: ids of two recordings have
//! nothing in common. What is no sum (target, kernel, rung) is listed side by side where it differs.
//!
//! Equal to one recording of both: rows, splits, stacks, totals and the sums of the trust header,
//! where both recordings give a lock the same name. Not equal: `elapsed` (the time between the two is
//! in neither), `threads` (a thread of both is counted in both) and thread time (nor is what a thread did
//! between the two in either).

use std::collections::BTreeMap;
use std::hash::Hash;

use hashbrown::HashMap;
use thiserror::Error;

use super::blame_stacks;
use super::build::sort_stacks;
use super::cpu_stacks::by_words;
use super::{CpuStack, Header, Report, Row, RowKey, SEVERAL, Split, StackShare, Trust, user_locks};
use crate::model::{GroupBy, Nanos};

/// Reports that cannot be put together.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// Their rows stand for different things.
    #[error("rows by {} cannot be added to rows by {}", word(*other), word(*own))]
    Rows {
        /// What a row of the first one stands for.
        own: GroupBy,
        /// What a row of the other one stands for.
        other: GroupBy,
    },
}

fn word(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Site => "site",
        GroupBy::Lock => "lock",
        GroupBy::Task => "task",
        GroupBy::Cgroup => "cgroup",
        GroupBy::Releaser => "releaser",
        GroupBy::Blame => "blame",
    }
}

impl Report {
    /// Adds everything that `other` counted. Order and number of rows to show stay this one's.
    pub fn merge(&mut self, other: &Report) -> Result<(), MergeError> {
        if self.by != other.by {
            return Err(MergeError::Rows { own: self.by, other: other.by });
        }
        self.header.merge(&other.header);
        self.total.merge(&other.total);
        // Wrappers are shown with a row, and are no part of what it stands for.
        let key = |row: &Row| RowKey { wrappers: Vec::new(), ..row.key.clone() };
        merge_by(&mut self.rows, &other.rows, key, Row::merge);
        self.sort_rows();
        if let Some(time) = &other.thread_time {
            self.thread_time.get_or_insert_default().merge(time);
        }
        user_locks::merge(&mut self.user_locks, &other.user_locks);
        self.chains.merge(&other.chains);
        let own = self.blame_stacks.drain(..);
        self.blame_stacks = blame_stacks::by_words(own.chain(other.blame_stacks.iter().cloned()));
        merge_by(&mut self.charged, &other.charged, key, Row::merge);
        self.charged.sort_by(|a, b| a.key.cmp(&b.key));
        merge_cpu_stacks(&mut self.cpu_stacks, &other.cpu_stacks);
        self.trust.merge(&other.trust);
        Ok(())
    }
}

impl Header {
    fn merge(&mut self, other: &Header) {
        list(&mut self.target, &other.target);
        list(&mut self.kernel, &other.kernel);
        self.cpus = self.cpus.max(other.cpus);
        self.elapsed += other.elapsed;
        self.threads = self.threads.saturating_add(other.threads);
        self.exit_status = self.exit_status.filter(|status| other.exit_status == Some(*status));
        add(&mut self.cpu_time, other.cpu_time, |a, b| a + b);
    }
}

impl Row {
    fn merge(&mut self, other: &Row) {
        if self.key.wrappers != other.key.wrappers {
            self.key.wrappers = vec![SEVERAL.to_owned()];
        }
        self.stat.merge(&other.stat);
        merge_splits(&mut self.splits, &other.splits);
        let key = |share: &StackShare| {
            (share.lock_type, share.lock.clone(), share.kernel.clone(), share.user.clone())
        };
        merge_by(&mut self.stacks, &other.stacks, key, |own, new| own.stat.merge(&new.stat));
        sort_stacks(&mut self.stacks);
        if let Some(hold) = &other.hold {
            self.hold.get_or_insert_default().merge(hold);
        }
        if let Some(queue) = &other.queue {
            self.queue.get_or_insert_default().merge(queue);
        }
        merge_slept(&mut self.holder_slept, &other.holder_slept);
        self.via += other.via;
        merge_by(&mut self.tasks, &other.tasks, |(task, _)| task.clone(), |a, b| a.1 += b.1);
        self.tasks.sort_by(|(a, long), (b, longer)| longer.cmp(long).then_with(|| a.cmp(b)));
        self.forget_when();
    }
}

fn merge_slept(own: &mut Vec<(String, Nanos)>, other: &[(String, Nanos)]) {
    let mut on: BTreeMap<String, Nanos> = BTreeMap::new();
    for (name, time) in own.iter().chain(other) {
        *on.entry(name.clone()).or_default() += *time;
    }
    *own = on.into_iter().collect();
    own.sort_by(|(a, long), (b, longer)| longer.cmp(long).then_with(|| a.cmp(b)));
}

fn merge_splits(own: &mut Vec<Split>, other: &[Split]) {
    merge_by(
        own,
        other,
        |split| split.lock_type,
        |own, new| {
            own.stat.merge(&new.stat);
            if let Some(hold) = &new.hold {
                own.hold.get_or_insert_default().merge(hold);
            }
        },
    );
    own.sort_by_key(|split| split.lock_type);
}

fn merge_cpu_stacks(own: &mut Vec<CpuStack>, other: &[CpuStack]) {
    *own = by_words(own.drain(..).chain(other.iter().cloned()));
}

impl Trust {
    fn merge(&mut self, other: &Trust) {
        self.records += other.records;
        self.counts.merge(&other.counts);
        add_up(&mut self.lost, &other.lost);
        self.throttled += other.throttled;
        add(&mut self.sched_until, other.sched_until, Ord::min);
        self.lost_sched += other.lost_sched;
        add_up(&mut self.unreadable, &other.unreadable);
        self.out_of_order += other.out_of_order;
        self.cpu_samples += other.cpu_samples;
        self.merge_cpu_event(other);
        // Every wait holds at most the larger one.
        add(&mut self.floor, other.floor, Ord::max);
        self.caller_named += other.caller_named;
        self.lock_named += other.lock_named;
        add(&mut self.charged, other.charged, |a, b| a + b);
        self.merge_sleeps(other);
        self.wait += other.wait;
        list(&mut self.kernel_symbols, &other.kernel_symbols);
        self.folded_keys += other.folded_keys;
        list(&mut self.rung, &other.rung);
        add(&mut self.recorder_cpu, other.recorder_cpu, |a, b| a + b);
        self.cpus_changed.extend(&other.cpus_changed);
        self.cpus_changed.sort_unstable();
        self.cpus_changed.dedup();
        other.notes.iter().for_each(|note| self.note(note.clone()));
    }

    fn merge_sleeps(&mut self, other: &Trust) {
        add(&mut self.sleeps, other.sleeps, |mut a, b| {
            a.merge(b);
            a
        });
    }

    fn merge_cpu_event(&mut self, other: &Trust) {
        match (&self.cpu_event, &other.cpu_event) {
            (None, event) => self.cpu_event = event.clone(),
            (Some((own, _)), Some((new, _))) if self.cpu_event != other.cpu_event => {
                self.note(format!("CPU samples of {own} and of {new} were added up"));
            }
            _ => {}
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Merges entries of one key, puts the others behind.
fn merge_by<T: Clone, K: Hash + Eq>(
    own: &mut Vec<T>,
    other: &[T],
    key: impl Fn(&T) -> K,
    merge: impl Fn(&mut T, &T),
) {
    let mut known: HashMap<K, usize> = own.iter().map(&key).zip(0..).collect();
    for entry in other {
        let at = *known.entry(key(entry)).or_insert(own.len());
        match own.get_mut(at) {
            Some(same) => merge(same, entry),
            None => own.push(entry.clone()),
        }
    }
}

/// Adds counts by name, in order of the names.
fn add_up<K: Clone + Ord>(own: &mut Vec<(K, u64)>, other: &[(K, u64)]) {
    let mut sums: BTreeMap<K, u64> = BTreeMap::new();
    for (name, count) in own.iter().chain(other) {
        let sum = sums.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    *own = sums.into_iter().collect();
}

fn add<T>(own: &mut Option<T>, other: Option<T>, sum: impl Fn(T, T) -> T) {
    *own = match (own.take(), other) {
        (Some(a), Some(b)) => Some(sum(a, b)),
        (a, b) => a.or(b),
    };
}

/// Words that differ stand side by side, each once.
fn list(own: &mut String, other: &str) {
    const BETWEEN: &str = "; ";
    for words in other.split(BETWEEN).filter(|words| !words.is_empty()) {
        if own.is_empty() {
            own.push_str(words);
        } else if !own.split(BETWEEN).any(|known| known == words) {
            own.push_str(BETWEEN);
            own.push_str(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_stand_side_by_side_each_once() {
        let mut kernel = String::new();
        for release in ["", "6.18.1", "6.12.0", "6.18.1", "6.12.0; 7.2.13"] {
            list(&mut kernel, release);
        }
        assert_eq!(kernel, "6.18.1; 6.12.0; 7.2.13");
    }

    #[test]
    fn counts_by_name_add_up_in_order_of_the_names_and_saturate() {
        let mut own = vec![("b", 1), ("a", u64::MAX)];
        add_up(&mut own, &[("c", 4), ("a", 2)]);
        assert_eq!(own, [("a", u64::MAX), ("b", 1), ("c", 4)]);
    }
}

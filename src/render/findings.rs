//! Findings in words: a plain sentence with its numbers, and the command that shows more.
//!
//! In: what a report found. Out: text, names escaped. One finding, one function.

use crate::render::escape::visible;
use crate::render::units::{counted, percent, time};
use crate::report::{
    Finding, HeapGrowth, HolderAsleep, HolderWithoutCpu, LostWaits, OneReleaser, QueuedWriter,
    ShortWaits, UnseenSpin,
};

/// A finding as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The word for it, for programs.
    pub id: &'static str,
    /// What was found.
    pub text: String,
    /// What shows more of it: arguments of `lockprof`, without the name of the recording.
    pub more: &'static str,
}

/// `finding` as a sentence.
pub fn sentence(finding: &Finding) -> Sentence {
    let (id, text, more) = match finding {
        Finding::LostWaits(found) => ("lost_waits", lost_waits(found), "record --no-spin -m 4096"),
        Finding::ShortWaits(found) => {
            ("short_waits", short_waits(found), "report --min-wait 100us")
        }
        Finding::HolderWithoutCpu(found) => {
            ("holder_without_cpu", holder_without_cpu(found), "report --blame")
        }
        Finding::HolderAsleep(found) => ("holder_asleep", holder_asleep(found), "report --blame"),
        Finding::QueuedWriter(found) => ("queued_writer", queued_writer(found), "report --rw"),
        Finding::OneReleaser(found) => ("one_releaser", one_releaser(found), "report --blame"),
        Finding::HeapGrowth(found) => ("heap_growth", heap_growth(found), "explain mmap_lock"),
        Finding::UnseenSpin(found) => ("unseen_spin", unseen_spin(found), "report --by path"),
    };
    Sentence { id, text, more }
}

fn lost_waits(&LostWaits { waits, at_most, known }: &LostWaits) -> String {
    let waits = counted(waits, "wait");
    format!(
        "Lost records may have cut {waits} of up to {}; the table knows of {}. Its totals are too \
         small.",
        time(at_most),
        time(known)
    )
}

fn short_waits(&ShortWaits { share, floor }: &ShortWaits) -> String {
    format!(
        "{} of the waiting is in waits about as short as measuring them takes ({}): without lockprof \
         there is less of it.",
        percent(share),
        time(floor)
    )
}

fn holder_without_cpu(HolderWithoutCpu { lock, share, known }: &HolderWithoutCpu) -> String {
    format!(
        "{} of the waiting for {} passed while its holder had no CPU ({} of which that is known): more \
         CPUs or fewer threads help, a shorter section does not.",
        percent(*share),
        visible(&lock.name),
        time(*known)
    )
}

fn holder_asleep(HolderAsleep { lock, share, slept_in }: &HolderAsleep) -> String {
    let slept_in = slept_in
        .as_ref()
        .map_or(String::new(), |function| format!(", most of it in {}", visible(function)));
    format!(
        "{} of the waiting for {} passed while its holder slept{slept_in}.",
        percent(*share),
        visible(&lock.name)
    )
}

fn queued_writer(QueuedWriter { caller, time: waited, share }: &QueuedWriter) -> String {
    format!(
        "{} of the waiting of readers in {} ({}) was behind readers: a writer that waits itself stood in \
         between.",
        percent(*share),
        visible(caller),
        time(*waited)
    )
}

fn one_releaser(found: &OneReleaser) -> String {
    let OneReleaser { lock, task, caller, share, hold } = found;
    format!(
        "{}/{} makes the others wait: {} of the waiting for {} that is charged to anybody ended when \
         it let go in {}; it kept the lock for {} on average.",
        visible(&task.comm),
        task.tid,
        percent(*share),
        visible(&lock.name),
        visible(caller),
        time(*hold)
    )
}

fn heap_growth(&HeapGrowth { pid, threads, share }: &HeapGrowth) -> String {
    format!(
        "mprotect by {threads} threads of process {pid} holds up {} of the waiting. Unless the program \
         calls it, malloc does, to grow the arenas of threads: fewer of them (MALLOC_ARENA_MAX) or \
         another malloc avoid it.",
        percent(share)
    )
}

fn unseen_spin(found: &UnseenSpin) -> String {
    let UnseenSpin { lock_type, caller, spun, share } = found;
    format!(
        "{} of the waiting for {lock_type} in {} is spinning ({}), seen by CPU samples only: it burns \
         CPU time.",
        percent(*share),
        visible(caller),
        time(*spun)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LockKind, LockType, Mode, Nanos};
    use crate::report::{LockName, NameEvidence, TaskName};

    #[test]
    fn every_finding_is_a_sentence_with_its_numbers() {
        let lock = LockName { name: "mmap_lock".into(), evidence: NameEvidence::Path };
        let slept_in = Some("folio_wait_bit_common".to_owned());
        let task = TaskName { comm: "bad\u{1b}[31m".into(), pid: 7, tid: 8 };
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let findings = [
            Finding::LostWaits(LostWaits { waits: 4, at_most: ms(12_300), known: ms(200) }),
            Finding::ShortWaits(ShortWaits { share: 0.62, floor: Nanos(3_400) }),
            Finding::HolderWithoutCpu(HolderWithoutCpu {
                lock: lock.clone(),
                share: 0.65,
                known: ms(2_900),
            }),
            Finding::HolderAsleep(HolderAsleep { lock: lock.clone(), share: 0.38, slept_in }),
            Finding::QueuedWriter(QueuedWriter {
                caller: "do_user_addr_fault".into(),
                time: ms(700),
                share: 0.42,
            }),
            Finding::OneReleaser(OneReleaser {
                lock,
                task,
                caller: "do_mprotect_pkey".into(),
                share: 0.98,
                hold: ms(8),
            }),
            Finding::HeapGrowth(HeapGrowth { pid: 7, threads: 33, share: 0.68 }),
            Finding::UnseenSpin(UnseenSpin {
                lock_type: LockType::new(LockKind::Rwsem, Mode::Write),
                caller: "do_mprotect_pkey".into(),
                spun: ms(1_727),
                share: 0.94,
            }),
        ];
        let said: Vec<String> = findings.iter().map(|finding| sentence(finding).text).collect();
        let expected = [
            "Lost records may have cut 4 waits of up to 12.3 s; the table knows of 200 ms. Its totals \
             are too small.",
            "62 % of the waiting is in waits about as short as measuring them takes (3.4 us): without \
             lockprof there is less of it.",
            "65 % of the waiting for mmap_lock passed while its holder had no CPU (2.9 s of which that is \
             known): more CPUs or fewer threads help, a shorter section does not.",
            "38 % of the waiting for mmap_lock passed while its holder slept, most of it in \
             folio_wait_bit_common.",
            "42 % of the waiting of readers in do_user_addr_fault (700 ms) was behind readers: a writer \
             that waits itself stood in between.",
            "bad\\x1b[31m/8 makes the others wait: 98 % of the waiting for mmap_lock that is charged to \
             anybody ended when it let go in do_mprotect_pkey; it kept the lock for 8 ms on average.",
            "mprotect by 33 threads of process 7 holds up 68 % of the waiting. Unless the program calls \
             it, malloc does, to grow the arenas of threads: fewer of them (MALLOC_ARENA_MAX) or another \
             malloc avoid it.",
            "94 % of the waiting for rwsem:W in do_mprotect_pkey is spinning (1.7 s), seen by CPU \
             samples only: it burns CPU time.",
        ];
        assert_eq!(said, expected);
    }
}

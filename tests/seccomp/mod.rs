//! Programs behind a seccomp filter that answers system calls with an errno, as containers do.
//!
//! perl is everywhere where dpkg is, and asks the kernel without a line of unsafe here.

use std::process::Command;

/// Where the kernel keeps the number of a call, and the low half of its second argument
/// (`struct seccomp_data`), on little-endian machines.
const NUMBER: u32 = 0;
const SECOND: u32 = 24;
/// perf_event_open(2) on x86_64; prctl(2) in the filter's own text is 157 there.
const PERF_EVENT_OPEN: u32 = 298;
/// Its second argument, a task, for all tasks: -1.
const ALL: u32 = u32::MAX;

const REFUSE: &str = r#"
    my ($errno, @fields) = (shift, split /,/, shift);
    my @steps = map { my $n = 2 * ($#fields - $_) + 1; my ($at, $is) = split /:/, $fields[$_];
        ([0x20, 0, 0, $at], [0x15, 0, $n, $is]) } 0 .. $#fields;
    push @steps, [0x06, 0, 0, 0x00050000 | $errno], [0x06, 0, 0, 0x7fff0000];
    my $steps = join '', map { pack 'SCCL', @$_ } @steps;
    my $filter = pack 'Sx6P', scalar @steps, $steps;
    syscall(157, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall(157, 22, 2, $filter) == 0 or die "seccomp: $!";
    exec @ARGV or die "exec: $!";
"#;

/// Whether filters can be put up here.
pub(crate) fn is_possible() -> bool {
    let perl = || Command::new("perl").args(["-e", "1"]).status().is_ok_and(|ran| ran.success());
    cfg!(target_arch = "x86_64") && perl()
}

/// Words before a program that is refused perf_event_open(2) with this errno.
#[allow(dead_code)] // Each test program uses its part.
pub(crate) fn without_perf(errno: i32) -> Vec<String> {
    behind(errno, &[(NUMBER, PERF_EVENT_OPEN)])
}

/// Words before a program that may count its own tasks, and not all of a CPU.
#[allow(dead_code)]
pub(crate) fn without_system_wide(errno: i32) -> Vec<String> {
    behind(errno, &[(NUMBER, PERF_EVENT_OPEN), (SECOND, ALL)])
}

fn behind(errno: i32, fields: &[(u32, u32)]) -> Vec<String> {
    let fields: Vec<String> = fields.iter().map(|(at, is)| format!("{at}:{is}")).collect();
    ["perl", "-e", REFUSE, &errno.to_string(), &fields.join(",")].map(str::to_owned).to_vec()
}

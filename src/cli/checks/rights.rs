//! What this user may do: settings, capabilities, tracefs, symbols, and an event opened on trial.
//!
//! In: [`Facts`]. Out: [`Check`]s; [`Missing`], all that stands in the way and what takes it away.

use super::{Addresses, Check, Facts, Level, Tracing, hint};

pub(super) const ALLOW_ALL: &str = "sudo sysctl kernel.perf_event_paranoid=-1";
pub(super) const MOUNT: &str = "sudo mount -t tracefs nodev /sys/kernel/tracing";
const OPEN_TRACEFS: &str = "sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing";
const AS_ROOT: &str = "sudo lockprof record ...";
/// Docker's default filter lets perf_event_open pass from version 20.10.9 on, with CAP_PERFMON.
pub(super) const CONTAINER: &str = "docker run --security-opt seccomp=unconfined --cap-add PERFMON --cap-add SYSLOG \\\n  \
     -v /sys/kernel/tracing:/sys/kernel/tracing IMAGE ...";

pub(super) fn paranoid(facts: &Facts) -> Check {
    const NAME: &str = "perf_event_paranoid";
    let Some(level) = facts.sysctls.perf_event_paranoid else {
        let found = "/proc/sys/kernel/perf_event_paranoid is missing: a kernel without \
                     CONFIG_PERF_EVENTS, or no /proc";
        return Check::fail(NAME, found, super::kernel::LOOK_AT_CONFIG);
    };
    if level < 0 {
        return Check::ok(NAME, format!("{level}: every user may trace"));
    }
    if facts.perfmon() {
        return Check::ok(NAME, format!("{level}: does not bind this user, who has CAP_PERFMON"));
    }
    let without = match level {
        0 => "no data of tracepoints",
        1 => "only their own processes, and no data of tracepoints",
        2 => "only their own processes outside the kernel",
        _ => "nothing",
    };
    Check::fail(NAME, format!("{level}: users without CAP_PERFMON see {without}"), ALLOW_ALL)
}

pub(super) fn capabilities(facts: &Facts) -> Check {
    const NAME: &str = "capabilities";
    let Some(own) = facts.capabilities else {
        return Check::warn(NAME, "unknown: /proc/self/status cannot be read", MOUNT_PROC);
    };
    let all = [
        (own.perfmon(), if own.sys_admin() { "CAP_SYS_ADMIN" } else { "CAP_PERFMON" }),
        (own.syslog(), "CAP_SYSLOG"),
        (own.ipc_lock(), "CAP_IPC_LOCK"),
    ];
    let names = |have: bool| -> Vec<&str> {
        all.iter().filter(|(has, _)| *has == have).map(|(_, name)| *name).collect()
    };
    let (have, lack) = (names(true).join(", "), names(false).join(" and no "));
    let needed = !own.perfmon() && !facts.permissive();
    let root = if facts.contained() { CONTAINER } else { AS_ROOT };
    match (have.is_empty(), lack.is_empty()) {
        (_, true) => Check::ok(NAME, have),
        (true, _) if needed => Check::fail(NAME, format!("none: no {lack}"), root),
        _ if needed => Check::fail(NAME, format!("no {lack}"), root),
        (true, _) => Check::ok(NAME, "none, and none is needed to trace with these settings"),
        _ => Check::ok(NAME, format!("{have}; no {lack}")),
    }
}

const MOUNT_PROC: &str = "sudo mount -t proc proc /proc";

pub(super) fn tracefs(facts: &Facts) -> Check {
    const NAME: &str = "tracefs";
    let may_mount = facts.capabilities.is_some_and(|own| own.sys_admin());
    match &facts.tracefs {
        Tracing::Readable(root) => Check::ok(NAME, format!("{}, readable", root.display())),
        Tracing::NoPermission(path) => {
            let found = format!("this user may not read {}", path.display());
            Check::fail(NAME, found, OPEN_TRACEFS)
        }
        Tracing::NotMounted { known: false } => {
            let found = "this kernel does not know it: built without CONFIG_TRACING, or older \
                         than Linux 4.1";
            Check::fail(NAME, found, super::kernel::LOOK_AT_CONFIG)
        }
        Tracing::NotMounted { known: true } if may_mount => {
            Check::warn(NAME, "not mounted; `lockprof record` will mount it", MOUNT)
        }
        Tracing::NotMounted { known: true } => Check::fail(NAME, "not mounted", MOUNT),
        Tracing::Broken(why) => Check::fail(NAME, why.clone(), "ls -l /sys/kernel/tracing/events"),
    }
}

/// Opens nothing: says how the trial went.
pub(super) fn trial(facts: &Facts) -> Check {
    const NAME: &str = "perf_event_open";
    let Some(refusal) = &facts.refusal else {
        let events = match facts.contention {
            Some(true) => "contention events and CPU samples open",
            _ => "CPU samples open; contention events could not be tried",
        };
        return Check::ok(NAME, events);
    };
    let remedy = hint::session(refusal, facts).map(|advice| advice.remedy());
    Check { name: NAME, level: Level::Fail, found: refusal.to_string(), remedy }
}

pub(super) fn kallsyms(facts: &Facts) -> Check {
    const NAME: &str = "kallsyms";
    let kptr = facts.sysctls.kptr_restrict;
    match facts.kallsyms {
        Addresses::Visible => Check::ok(NAME, "addresses of kernel functions are visible"),
        Addresses::Missing => Check::fail(
            NAME,
            "/proc/kallsyms cannot be read: kernel functions stay without names",
            "grep CONFIG_KALLSYMS= /boot/config-$(uname -r)",
        ),
        Addresses::Hidden => {
            let setting = kptr.map_or("unknown".to_owned(), |value| value.to_string());
            let found = format!(
                "addresses are hidden, so kernel functions stay without names: kptr_restrict is \
                 {setting}{}",
                if facts.syslog() { "" } else { ", and this user has no CAP_SYSLOG" }
            );
            Check::fail(NAME, found, show_addresses(facts).join("\n"))
        }
    }
}

/// What makes hidden addresses visible (`kallsyms_show_value` in `kernel/kallsyms.c`): 0 shows them
/// to all as long as perf_event_paranoid is below 2, 1 to CAP_SYSLOG, 2 to nobody.
fn show_addresses(facts: &Facts) -> Vec<&'static str> {
    let mut commands = Vec::new();
    if facts.syslog() {
        commands.push("sudo sysctl kernel.kptr_restrict=1");
        return commands;
    }
    if facts.sysctls.kptr_restrict != Some(0) {
        commands.push("sudo sysctl kernel.kptr_restrict=0");
    }
    if facts.sysctls.perf_event_paranoid.is_none_or(|level| level > 1) {
        commands.push(ALLOW_ALL);
    }
    if commands.is_empty() { vec![AS_ROOT] } else { commands }
}

/// All that keeps this user from recording, in sentences, and the commands that take it away.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) reasons: Vec<String>,
    pub(super) commands: Vec<&'static str>,
}

impl Missing {
    /// Looks for every reason at once: who mends one should not run into the next.
    pub(super) fn of(facts: &Facts) -> Missing {
        let mut missing = Missing::default();
        if !facts.perfmon() && !facts.permissive() {
            let level = facts.sysctls.perf_event_paranoid;
            let level = level.map_or("unknown".to_owned(), |level| level.to_string());
            let reason = format!("perf_event_paranoid is {level} and this user has no CAP_PERFMON");
            missing.add(reason, &[ALLOW_ALL]);
        }
        if let Tracing::NoPermission(path) = &facts.tracefs {
            let reason = format!("{} is closed to this user", path.display());
            missing.add(reason, &[OPEN_TRACEFS]);
        }
        match (facts.kallsyms, facts.sysctls.kptr_restrict) {
            (Addresses::Hidden, Some(0)) if missing.commands.contains(&ALLOW_ALL) => {}
            (Addresses::Hidden, Some(0)) => {
                let reason = "kernel symbols are hidden from users without CAP_SYSLOG".to_owned();
                missing.add(reason, &show_addresses(facts));
            }
            (Addresses::Hidden, setting) => {
                let setting = setting.map_or("unknown".to_owned(), |setting| setting.to_string());
                let reason = format!("kptr_restrict is {setting} and hides kernel symbols");
                missing.add(reason, &show_addresses(facts));
            }
            (Addresses::Visible | Addresses::Missing, _) => {}
        }
        missing
    }

    fn add(&mut self, reason: String, commands: &[&'static str]) {
        self.reasons.push(reason);
        for command in commands {
            if !self.commands.contains(command) {
                self.commands.push(command);
            }
        }
    }
}

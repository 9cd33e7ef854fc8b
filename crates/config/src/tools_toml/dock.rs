//! `[dock]`: how folders of Python tools are served.

use upstream::confine::Level;

use crate::Surroundings;
use crate::dock::{Approval, Dock, Sandbox};
use crate::fault::Faults;
use crate::limits::{DOCK_CALLS_MAX, DOCK_MEMORY_MB_MIN};
use crate::policies::networks;
use crate::reader::Value;
use crate::tools_toml::server::wait;

pub fn read(value: &Value<'_>, surroundings: &Surroundings<'_>, faults: &mut Faults<'_>) -> Dock {
    let usual = Dock::default();
    let Some(mut section) = value.section("in `[dock]`", faults) else { return usual };
    let folder = section.get("folder").and_then(|value| value.string(faults));
    let python = section.get("python").and_then(|value| value.string(faults));
    let mut number = |key: &'static str, least: u32, most: u32| {
        let number = section.get(key)?.number(least.into(), most.into(), faults);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let size = |number: Option<u32>, usual: usize| {
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usual)
    };
    let calls_max = size(number("max_concurrency", 1, DOCK_CALLS_MAX), usual.calls_max);
    let waiting_max = size(number("queue", 1, DOCK_CALLS_MAX), usual.waiting_max);
    let calls_a_minute = number("rate_limit", 1, u32::MAX);
    let memory_mb = number("memory_mb", DOCK_MEMORY_MB_MIN, u32::MAX).unwrap_or(usual.memory_mb);
    let processes_max = number("processes", 1, u32::MAX).unwrap_or(usual.processes_max);
    let disk_mb = number("disk_mb", 1, u32::MAX).unwrap_or(usual.disk_mb);
    let call_timeout = wait(&mut section, "timeout", usual.call_timeout, faults);
    let is_eager = section.get("eager").and_then(|value| value.boolean(faults));
    let is_strict = section.get("strict").and_then(|value| value.boolean(faults));
    let network = section.get("network").and_then(|value| value.boolean(faults));
    let words = [
        ("none", Sandbox::Off),
        ("best-effort", Sandbox::BestEffort),
        ("landlock", Sandbox::Required(Level::Landlock)),
        ("full", Sandbox::Required(Level::Full)),
    ];
    let sandbox = section.get("require_sandbox").and_then(|value| value.choice(&words, faults));
    let mut paths = |key: &'static str| {
        let listed = section.get(key).map(|value| value.strings("paths", faults));
        let path = |(_, path): (Value<'_>, &str)| surroundings.folder.join(path);
        listed.unwrap_or_default().into_iter().map(path).collect()
    };
    let (allow_reads, allow_writes) = (paths("allow_read"), paths("allow_write"));
    let watches = section.get("watch").and_then(|value| value.boolean(faults));
    let quiet = wait(&mut section, "watch_debounce", usual.quiet, faults);
    let install_timeout = wait(&mut section, "install_timeout", usual.install_timeout, faults);
    let managers = section.get("reload_from").map(|value| networks(&value, faults));
    let words = [("auto", Approval::Auto), ("required", Approval::Required)];
    let approval = section.get("approval").and_then(|value| value.choice(&words, faults));
    section.close(&[], faults);
    Dock {
        folder: folder.map(|folder| surroundings.folder.join(folder)),
        python: python.map(str::to_owned),
        call_timeout,
        calls_max,
        waiting_max,
        calls_a_minute,
        is_eager: is_eager.unwrap_or(false),
        is_strict: is_strict.unwrap_or(usual.is_strict),
        network: network.unwrap_or(usual.network),
        sandbox: sandbox.unwrap_or(usual.sandbox),
        memory_mb,
        allow_reads,
        allow_writes,
        processes_max,
        disk_mb,
        install_timeout,
        is_watching: watches,
        quiet,
        managers,
        approval,
    }
}

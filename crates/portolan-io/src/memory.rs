//! How much memory can still be had, so that a size is refused before it is allocated: the least of
//! what the system has free, what the control group leaves and what the address space limit leaves.
//! Only Linux says; elsewhere nothing is known and nothing is refused.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use crate::error::{Check, Problem};

/// Requests below this are not worth asking the system about.
const SMALL: u64 = 1 << 24;

/// Refuses a size that cannot be had; `what` takes it, `advice` says what to do instead.
pub(crate) fn check(what: &str, bytes: u64, advice: &str) -> Check<()> {
    if bytes < SMALL {
        return Ok(());
    }
    compare(what, bytes, available(), advice)
}

fn compare(what: &str, bytes: u64, free: Option<u64>, advice: &str) -> Check<()> {
    match free {
        Some(free) if bytes > free => Err(Problem::new(format!(
            "{what} takes {}, {} of memory are free: {advice}",
            shown_bytes(bytes),
            shown_bytes(free)
        ))),
        _ => Ok(()),
    }
}

/// Bytes that can still be allocated; `None` where the system does not say.
pub fn available() -> Option<u64> {
    [free_memory(), group_leaves(), address_space_leaves()].into_iter().flatten().min()
}

fn free_memory() -> Option<u64> {
    field_kb(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// A line such as `MemAvailable:   24117248 kB`, in bytes.
fn field_kb(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What `ulimit -v` leaves.
fn address_space_leaves() -> Option<u64> {
    let most = soft_limit(&read_to_string("/proc/self/limits").ok()?, "Max address space")?;
    let used = field_kb(&read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(most.saturating_sub(used))
}

/// The first column of a limit; `None` where it is unlimited.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the control group and those above it leave; version 2, then version 1.
fn group_leaves() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let unified = group(&groups, "")
        .map(|path| least_above("/sys/fs/cgroup", path, "memory.max", "memory.current"));
    let separate = group(&groups, "memory").map(|path| {
        let root = "/sys/fs/cgroup/memory";
        least_above(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes")
    });
    [unified, separate].into_iter().flatten().flatten().min()
}

/// The path of a controller's group in /proc/self/cgroup; version 2 has no controller's name.
fn group<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

fn least_above(root: &str, path: &str, limit: &str, usage: &str) -> Option<u64> {
    let folder = PathBuf::from(format!("{root}{path}"));
    let within = folder.ancestors().take_while(|folder| folder.starts_with(root));
    within.filter_map(|folder| leaves(folder, limit, usage)).min()
}

fn leaves(folder: &Path, limit: &str, usage: &str) -> Option<u64> {
    let number = |name: &str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(limit)?, number(usage)?);
    let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    Some(left_of(limit, usage, &stat))
}

/// Files that were read are counted as used, but are given up when memory is asked for.
fn left_of(limit: u64, usage: u64, stat: &str) -> u64 {
    let cached = ["total_inactive_file ", "inactive_file "]
        .iter()
        .find_map(|name| stat.lines().find_map(|line| line.strip_prefix(name)))
        .and_then(|number| number.trim().parse::<u64>().ok());
    limit.saturating_sub(usage.saturating_sub(cached.unwrap_or(0)))
}

/// A size for people, such as 1.5 GB.
pub fn shown_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_beyond_the_memory_is_refused_with_both_numbers() {
        let advice = "read a part of it with --region";
        let told = compare("array 'map'", 6_400_000_000, Some(3_100_000_000), advice).unwrap_err();
        let expected = "array 'map' takes 6.4 GB, 3.1 GB of memory are free: \
                        read a part of it with --region";
        assert_eq!(told, Problem::new(expected));
        assert!(compare("array 'map'", 6, Some(6), advice).is_ok());
        assert!(compare("array 'map'", u64::MAX, None, advice).is_ok());
    }

    #[test]
    fn sizes_for_people() {
        let sizes = [999, 1000, 999_949, 999_950, 6_400_000_000, u64::MAX].map(shown_bytes);
        assert_eq!(sizes, ["999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "6.4 GB", "18.4 EB"]);
    }

    #[test]
    fn what_the_system_says() {
        let meminfo = "MemTotal:       24 kB\nMemAvailable:   12 kB\n";
        assert_eq!(field_kb(meminfo, "MemAvailable:"), Some(12 * 1024));
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(soft_limit(limits, "Max address space"), None);
        let limits = limits.replace("unlimited ", "1048576 ");
        assert_eq!(soft_limit(&limits, "Max address space"), Some(1_048_576));
        assert_eq!(group("4:cpu,memory:/a/b\n0::/c\n", "memory"), Some("/a/b"));
        assert_eq!(group("4:cpu,memory:/a/b\n0::/c\n", ""), Some("/c"));
        assert_eq!(left_of(100, 80, "anon 3\ninactive_file 30\n"), 50);
        assert_eq!(left_of(100, 120, ""), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_something() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}

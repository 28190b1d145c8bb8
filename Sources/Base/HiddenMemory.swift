internal import CThread
import Glibc

/// The memory of this process, which holds keys and passwords.
public enum HiddenMemory {
    /// Keeps other programs from seeing the memory: no core file is written, and no program but root's can trace this
    /// process or read its files in /proc that show memory, descriptors or environment.
    ///
    /// The limit of core files alone does not stop a handler that /proc/sys/kernel/core_pattern names (core(5)), nor
    /// another process of the same user. Lasts until the process runs another program. Metrics go on: a process may
    /// read about itself.
    public static func begin() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = process_hide_memory()
    }
}

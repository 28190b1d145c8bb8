import CEvent

/// Controls how this process takes memory from the system, and gives it back.
public enum ProcessMemory {
    /// Allocations from this size on are mapped separately, and go back to the system when they are freed.
    private static let mappedFrom: Int32 = 128 * 1024

    /// Call it before the first thread starts.
    ///
    /// By default, glibc raises the size from which it maps up to 32 MiB as soon as something of that size was freed,
    /// and gives each thread an arena of its own. Memory that a burst took is then in the middle of an arena and stays
    /// (mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX).
    public static func configure(loops: Int) {
        mallopt(M_MMAP_THRESHOLD, mappedFrom)
        mallopt(M_TRIM_THRESHOLD, mappedFrom)
        mallopt(M_ARENA_MAX, Int32(clamping: max(2, loops + 2)))
    }

    /// Returns free memory inside of the heaps to the system: malloc_trim(3). Takes milliseconds; not on a loop.
    public static func giveBack() { malloc_trim(0) }
}

import Glibc

/// One file descriptor kept in reserve. When the process has no other descriptor left, the reserve is closed for a
/// moment to accept and close a waiting peer. Otherwise the port would stay readable without end (accept(2), EMFILE).
/// One owner, not thread-safe.
struct DescriptorReserve {
    private var descriptor: Int32
    private let open: () -> Int32
    private let close: (Int32) -> Void

    /// `open` makes a descriptor that has no other use, or fails with -1.
    init(
        open: @escaping () -> Int32 = { Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC) },
        close: @escaping (Int32) -> Void = { _ = Glibc.close($0) }
    ) {
        self.open = open
        self.close = close
        self.descriptor = open()
    }

    /// Runs `body` while the reserved descriptor is free. Returns false, without running `body`, when there is none:
    /// another thread took it the last time.
    mutating func use(_ body: () -> Void) -> Bool {
        if descriptor < 0 { descriptor = open() }
        guard descriptor >= 0 else { return false }
        close(descriptor)
        body()
        descriptor = open()
        return true
    }

    mutating func giveUp() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}

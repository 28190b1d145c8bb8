import Glibc

/// The number of the server's calls of malloc so far, from the file into which a preloaded library counts them
/// (tools/allocations/count.c). Eight bytes in the machine's order.
struct AllocationCounter: Sendable {
    private let path: String

    /// The file must be there.
    init(_ path: String) throws(BenchError) {
        self.path = path
        guard count != nil else { throw BenchError(.notReady, "--allocations-file \(path): no counter") }
    }

    /// Nil when the file is gone.
    var count: Int? {
        guard let bytes = try? TextFile.read(path, byteCountMax: 8), bytes.count == 8 else { return nil }
        return Int(clamping: bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    }
}

import Base
internal import CLMDB
import Glibc

/// Makes data.mdb longer before LMDB needs it, so that a full disk is noticed here.
///
/// LMDB writes pages past the file's end with pwrite(2) and writev(2). On a full disk, such a write may be done only
/// in part, and LMDB reports EIO, as for a failing disk. Blocks that fallocate(2) has reserved are there when they
/// are written. File systems that copy on write (btrfs, ZFS, thin volumes) do not promise that: see
/// `StoreSpace.meaning(of:)`. The writer's thread only.
struct FileGrowth {
    /// Reserves the bytes of a file from `offset` on and makes it that long. Returns an errno, or 0 for success.
    typealias Allocate = @Sendable (_ file: Int32, _ offset: Int, _ byteCount: Int) -> Int32

    let file: Int32
    let pageByteCount: Int
    private let allocate: Allocate
    /// The file's length in pages. All of them have their blocks, as far as the file system promises.
    private(set) var pageCount: Int
    private var isFull = false
    private var nextTry = Instant.now

    /// On a full disk, growing is tried once in this time, because each try may take a while.
    private let retryInterval: Duration

    init(file: Int32, pageByteCount: Int, retryInterval: Duration, allocate: @escaping Allocate = Self.system) {
        self.file = file
        self.pageByteCount = pageByteCount
        self.allocate = allocate
        self.retryInterval = retryInterval
        self.pageCount = 0
        // A copied file may have holes, and LMDB leaves some: pages that it took and freed in one transaction.
        measure()
        if pageCount > 0 { isFull = allocate(file, 0, pageCount * pageByteCount) != 0 }
    }

    /// Grows to the first of `targets` for which there is room. Targets are numbers of pages, the largest first.
    mutating func grow(toOneOf targets: [Int]) {
        if isFull, Instant.now < nextTry { return }
        isFull = false
        for target in targets where target > pageCount {
            let offset = pageCount * pageByteCount
            if allocate(file, offset, target * pageByteCount - offset) == 0 {
                pageCount = target
                break
            }
            isFull = true
            // Some file systems keep what they could reserve.
            measure()
        }
        if isFull { nextTry = Instant.now.advanced(by: retryInterval) }
    }

    /// Whether the file system refuses `pages` more for lack of room. Pages that it grants are kept.
    mutating func isRefused(pages: Int) -> Bool {
        let code = allocate(file, pageCount * pageByteCount, pages * pageByteCount)
        measure()
        return code == ENOSPC || code == EDQUOT
    }

    private mutating func measure() {
        var status = stat()
        if fstat(file, &status) == 0 { pageCount = max(pageCount, Int(status.st_size) / pageByteCount) }
    }

    /// fallocate(2), or written zeros if the file system has no fallocate(2).
    static let system: Allocate = { file, offset, byteCount in
        // Proof: Int and off_t have 64 bits.
        while fallocate(file, 0, off_t(offset), off_t(byteCount)) != 0 {
            if errno == EOPNOTSUPP || errno == ENOSYS { return writeZeros(file, offset, byteCount) }
            if errno != EINTR { return errno }
        }
        return 0
    }

    /// Writes past the end only, because LMDB's pages are before it.
    private static func writeZeros(_ file: Int32, _ offset: Int, _ byteCount: Int) -> Int32 {
        var status = stat()
        guard fstat(file, &status) == 0 else { return errno }
        let zeros = [UInt8](repeating: 0, count: 64 * 1024)
        var position = max(offset, Int(status.st_size))
        while position < offset + byteCount {
            // Proof: Int and off_t have 64 bits.
            let count = pwrite(file, zeros, min(zeros.count, offset + byteCount - position), off_t(position))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return count < 0 ? errno : ENOSPC }
            position += count
        }
        return 0
    }
}

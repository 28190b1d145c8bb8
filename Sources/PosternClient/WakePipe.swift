import Glibc

/// A pipe that ends a thread's poll(2). Any thread writes to it; the polling thread reads it.
final class WakePipe: Sendable {
    let readDescriptor: Int32
    private let writeDescriptor: Int32

    init() throws(SystemError) {
        var descriptors: [Int32] = [-1, -1]
        guard pipe(&descriptors) == 0 else { throw SystemError(errno) }
        readDescriptor = descriptors[0]
        writeDescriptor = descriptors[1]
        makeNonBlocking(readDescriptor)
        makeNonBlocking(writeDescriptor)
    }

    deinit {
        close(readDescriptor)
        close(writeDescriptor)
    }

    /// A full pipe wakes as well, so that a failed write does not matter.
    func wake() {
        var byte: UInt8 = 1
        _ = write(writeDescriptor, &byte, 1)
    }

    func drain() {
        var bytes: (UInt64, UInt64) = (0, 0)
        while read(readDescriptor, &bytes, 16) > 0 {}
    }
}

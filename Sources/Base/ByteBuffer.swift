// A growable run of bytes that is written at one end and read at the other. One owner, no copy on write.
// Invariant: 0 ≤ readIndex ≤ writeIndex ≤ capacity.

public struct ByteBuffer: ~Copyable {
    private var storage: UnsafeMutableRawPointer
    public private(set) var capacity: Int
    private var readIndex = 0
    private var writeIndex = 0

    /// Without a capacity, room is made with the first byte that is written: an idle connection costs little here.
    public init(capacity: Int = 0) {
        self.capacity = capacity
        self.storage = Self.allocate(capacity)
    }

    deinit { free() }

    // Unsafe: nothing is read from it or written to it.
    /// The address of all buffers without a capacity, which therefore allocate nothing.
    nonisolated(unsafe) private static let nowhere = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 16)

    private static func allocate(_ capacity: Int) -> UnsafeMutableRawPointer {
        capacity > 0 ? UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16) : nowhere
    }

    private borrowing func free() { if capacity > 0 { storage.deallocate() } }

    public var readableByteCount: Int { writeIndex - readIndex }
    public var isEmpty: Bool { readIndex == writeIndex }

    /// The bytes that are written and not yet consumed. They are valid until the next mutation.
    public var readable: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: storage + readIndex, count: writeIndex - readIndex)
    }

    /// At least `byteCount` writable bytes. Then call `commit` with the number of bytes that were filled.
    public mutating func reserve(_ byteCount: Int) -> UnsafeMutableRawPointer {
        if capacity - writeIndex < byteCount { makeRoom(byteCount) }
        return storage + writeIndex
    }

    public mutating func commit(_ byteCount: Int) {
        precondition(byteCount >= 0 && byteCount <= capacity - writeIndex, "commit past the reserved bytes")
        writeIndex += byteCount
    }

    public mutating func append(_ byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        writeIndex += 1
    }

    public mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        writeIndex += bytes.count
    }

    public mutating func append(contentsOf bytes: [UInt8]) {
        bytes.withUnsafeBytes { append(contentsOf: $0) }
    }

    public mutating func append(bigEndian value: UInt32) {
        reserve(4).storeBytes(of: value.bigEndian, as: UInt32.self)
        writeIndex += 4
    }

    /// Overwrites four bytes that are already written, `offset` bytes into `readable`: for a length known only later.
    public mutating func overwrite(bigEndian value: UInt32, at offset: Int) {
        precondition(offset >= 0 && offset + 4 <= readableByteCount, "overwrite outside of the written bytes")
        (storage + readIndex + offset).storeBytes(of: value.bigEndian, as: UInt32.self)
    }

    /// Forgets everything written after the first `byteCount` readable bytes: for an answer that could not be finished.
    public mutating func truncate(to byteCount: Int) {
        precondition(byteCount >= 0 && byteCount <= readableByteCount, "truncate past the written bytes")
        writeIndex = readIndex + byteCount
    }

    public mutating func consume(_ byteCount: Int) {
        precondition(byteCount >= 0 && byteCount <= readableByteCount, "consume past the written bytes")
        readIndex += byteCount
        if readIndex == writeIndex {
            readIndex = 0
            writeIndex = 0
        }
    }

    /// Gives memory back when the buffer is empty and larger than `byteCountMax`.
    public mutating func releaseIfIdle(above byteCountMax: Int = 0) {
        guard isEmpty, capacity > byteCountMax else { return }
        free()
        storage = Self.allocate(0)
        capacity = 0
        readIndex = 0
        writeIndex = 0
    }

    /// Gives memory back if three quarters of it or more are free, and it is more than `byteCountMax`. Otherwise the
    /// beginning of a short message would keep the memory of a long one that lay before it.
    public mutating func releaseSpare(above byteCountMax: Int) {
        let used = readableByteCount
        guard capacity > byteCountMax, used <= capacity / 4 else { return }
        move(to: used)
    }

    public borrowing func copyBytes() -> [UInt8] { [UInt8](readable) }

    private mutating func makeRoom(_ byteCount: Int) {
        let used = writeIndex - readIndex
        if capacity - used >= byteCount, readIndex >= capacity / 2 {
            storage.copyMemory(from: storage + readIndex, byteCount: used)
        } else {
            return move(to: max(capacity * 2, used + byteCount, 256))
        }
        readIndex = 0
        writeIndex = used
    }

    /// Moves the readable bytes into memory of this size, which they fit into.
    private mutating func move(to byteCount: Int) {
        let used = readableByteCount
        let fresh = Self.allocate(byteCount)
        fresh.copyMemory(from: storage + readIndex, byteCount: used)
        free()
        storage = fresh
        capacity = byteCount
        readIndex = 0
        writeIndex = used
    }
}

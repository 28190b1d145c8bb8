import Glibc

/// Bytes that must not outlive their use or appear in a log: passwords, keys, API keys on their way in.
///
/// The memory is wiped when the last reference goes; it prints as `<secret>`; comparing takes the same time whatever
/// the contents. If a caller copies the bytes, it has to wipe the copy itself.
public final class Secret: Sendable {
    // The pointer is set once, written before init returns, and freed by deinit alone.
    nonisolated(unsafe) private let storage: UnsafeMutableRawBufferPointer

    /// Copies `bytes`.
    public init(copying bytes: UnsafeRawBufferPointer) {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        storage.copyMemory(from: bytes)
        self.storage = storage
    }

    private init(owning storage: UnsafeMutableRawBufferPointer) {
        self.storage = storage
    }

    public convenience init(_ bytes: [UInt8]) {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        storage.copyBytes(from: bytes)
        self.init(owning: storage)
    }

    /// The bytes of all `parts`, one after the other.
    public convenience init(joining parts: [Secret]) {
        let storage = UnsafeMutableRawBufferPointer.allocate(
            byteCount: parts.reduce(0) { $0 + $1.byteCount }, alignment: 16)
        var place = 0
        for part in parts {
            part.withBytes { UnsafeMutableRawBufferPointer(rebasing: storage[place...]).copyMemory(from: $0) }
            place += part.byteCount
        }
        self.init(owning: storage)
    }

    public convenience init(_ string: String) {
        self.init([UInt8](string.utf8))
    }

    deinit {
        if let start = storage.baseAddress { explicit_bzero(start, storage.count) }
        storage.deallocate()
    }

    public var byteCount: Int { storage.count }
    public var isEmpty: Bool { storage.isEmpty }

    /// The bytes are valid during `body` only.
    public func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(storage))
    }

    public static let empty = Secret([])
}

extension Secret: Equatable, CustomStringConvertible, CustomReflectable {
    public static func == (left: Secret, right: Secret) -> Bool {
        left.withBytes { leftBytes in right.withBytes { rightBytes in constantTimeEqual(leftBytes, rightBytes) } }
    }

    public var description: String { "<secret>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Compares without an early exit; only the lengths can be told from the time it takes.
public func constantTimeEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt64 = 0
    var index = 0
    while index + 8 <= left.count {
        difference |=
            left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            ^ right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        index += 8
    }
    while index < left.count {
        difference |= UInt64(left[index] ^ right[index])
        index += 1
    }
    return difference == 0
}

public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.withUnsafeBytes { leftBytes in right.withUnsafeBytes { constantTimeEqual(leftBytes, $0) } }
}

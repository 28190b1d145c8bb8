import Base
import CNGHTTP2

/// The header fields of an answer that is sent. One list serves all answers of a connection, so that the fields of a
/// call's answer allocate nothing.
public final class HTTP2Fields {
    /// An answer has 7 fields at most.
    private static let countMax = 16

    private let entries = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: countMax)
    private(set) var count = 0
    /// The texts of fields that were copied; empty for the answers of calls.
    private var copies: [UnsafeMutableBufferPointer<UInt8>] = []

    init() {}

    deinit {
        freeCopies()
        entries.deallocate()
    }

    private func freeCopies() {
        for copy in copies { copy.deallocate() }
        copies.removeAll(keepingCapacity: true)
    }

    /// A field that is the same in many answers, so that the peer's table of fields keeps it.
    public func add(_ name: StaticString, _ value: StaticString) {
        add(
            name, value.bytes,
            flags: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
    }

    /// A field whose value is the same in many requests of a connection. `value` must be valid until the request was
    /// handed over.
    public func add(_ name: StaticString, repeated value: UnsafeRawBufferPointer) {
        add(name, value, flags: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
    }

    /// A field whose value differs from answer to answer. `value` must be valid until the answer was handed over.
    public func add(_ name: StaticString, unique value: UnsafeRawBufferPointer) {
        add(
            name, value, flags: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
    }

    /// A field whose text is kept until the fields are handed over.
    public func add(copying name: String, _ value: String) {
        let bytes = [UInt8](name.utf8) + [UInt8](value.utf8)
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        copies.append(copy)
        let nameByteCount = name.utf8.count
        append(
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(copy)[..<nameByteCount]),
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(copy)[nameByteCount...]), flags: 0)
    }

    private func add(_ name: StaticString, _ value: UnsafeRawBufferPointer, flags: UInt32) {
        append(name.bytes, value, flags: flags)
    }

    private func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, flags: UInt32) {
        precondition(count < Self.countMax, "more fields than an answer has")
        guard let nameStart = name.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
        // nghttp2 only reads what these point to (nghttp2_nv: "name", "value").
        let start = value.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nameStart
        (entries + count).initialize(
            to: nghttp2_nv(
                name: UnsafeMutablePointer(mutating: nameStart), value: UnsafeMutablePointer(mutating: start),
                namelen: name.count, valuelen: value.count, flags: UInt8(truncatingIfNeeded: flags)))
        count += 1
    }

    /// Hands the fields over and forgets them.
    func take<Result>(_ body: (UnsafeMutablePointer<nghttp2_nv>, Int) -> Result) -> Result {
        defer {
            count = 0
            freeCopies()
        }
        return body(entries, count)
    }
}

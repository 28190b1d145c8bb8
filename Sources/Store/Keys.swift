public import Base

// Keys of any domain. A tenant's rows begin with its id and a zero byte, which no Text holds.

extension StoreKey {
    /// The key as one array: where a scan resumes. Too long a key is our own mistake here and traps.
    public var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: KeyWriter.byteCountMax) { buffer, count in
            var writer = KeyWriter(into: UnsafeMutableRawBufferPointer(buffer))
            write(into: &writer)
            precondition(!writer.isTooLong, "a key above \(KeyWriter.byteCountMax) bytes")
            count = writer.count
        }
    }
}

/// `tenant ‖ 0x00 ‖ text`
public struct TenantTextKey: StoreKey, Hashable, Sendable {
    public var tenant: Text
    public var text: Text

    public init(_ tenant: Text, _ text: Text) {
        self.tenant = tenant
        self.text = text
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: text.bytes)
    }
}

/// `tenant ‖ 0x00 ‖ hash`
public struct TenantHashKey: StoreKey, Sendable {
    public var tenant: Text
    public var hash: [UInt8]

    public init(_ tenant: Text, _ hash: [UInt8]) {
        self.tenant = tenant
        self.hash = hash
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: hash)
    }
}

/// `hash`
public struct HashKey: StoreKey, Sendable {
    public var hash: [UInt8]

    public init(_ hash: [UInt8]) { self.hash = hash }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: hash) }
}

/// The text's bytes.
public struct TextKey: StoreKey, Sendable {
    public var text: Text

    public init(_ text: Text) { self.text = text }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: text.bytes) }
}

/// `time (µs)`; what is from before 1970 counts as from 1970.
public struct TimeKey: StoreKey, Sendable {
    public var time: Timestamp

    public init(_ time: Timestamp) { self.time = time }

    public init(stored key: UnsafeRawBufferPointer) {
        let micros = key.count == 8 ? UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) : 0
        self.time = Timestamp(microseconds: Int64(clamping: micros))
    }

    // Proof: no negative number is converted.
    public func write(into key: inout KeyWriter) { key.append(bigEndian: UInt64(max(0, time.microseconds))) }
}

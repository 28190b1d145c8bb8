public import Base

// Keys of any domain. A tenant's rows begin with its id and a zero byte, which no Text holds.

/// `tenant ‖ 0x00 ‖ text`
public struct TenantTextKey: StoreKey, Hashable {
    public var tenant: Text
    public var text: Text

    public init(_ tenant: Text, _ text: Text) {
        self.tenant = tenant
        self.text = text
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated() else { return nil }
        self.init(tenant, key.remainingText())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: text.bytes)
    }
}

/// `tenant ‖ 0x00 ‖ hash`
public struct TenantHashKey: StoreKey {
    public var tenant: Text
    public var hash: [UInt8]

    public init(_ tenant: Text, _ hash: [UInt8]) {
        self.tenant = tenant
        self.hash = hash
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated() else { return nil }
        self.init(tenant, key.remainder())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: hash)
    }
}

/// `hash`
public struct HashKey: StoreKey {
    public var hash: [UInt8]

    public init(_ hash: [UInt8]) { self.hash = hash }

    public init?(stored bytes: UnsafeRawBufferPointer) { self.init([UInt8](bytes)) }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: hash) }
}

/// The text's bytes.
public struct TextKey: StoreKey {
    public var text: Text

    public init(_ text: Text) { self.text = text }

    public init?(stored bytes: UnsafeRawBufferPointer) { self.init(Text(unchecked: [UInt8](bytes))) }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: text.bytes) }
}

/// `time (µs)`; a time before 1970 counts as 1970.
public struct TimeKey: StoreKey {
    public var time: Timestamp

    public init(_ time: Timestamp) { self.time = time }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let micros = key.bigEndian(), key.isAtEnd else { return nil }
        self.init(Timestamp(microseconds: Int64(clamping: micros)))
    }

    // Proof: no negative number is converted.
    public func write(into key: inout KeyWriter) { key.append(bigEndian: UInt64(max(0, time.microseconds))) }
}

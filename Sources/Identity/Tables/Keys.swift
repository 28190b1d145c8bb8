public import Base
public import Store

// The domain's keys: what stands beside the general ones of Store.

/// `tenant ‖ 0x00 ‖ uid`
public struct UserKey: StoreKey, Sendable, Hashable {
    public var tenant: Text
    public var uid: Text

    public init(_ tenant: Text, _ uid: Text) {
        self.tenant = tenant
        self.uid = uid
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: uid.bytes)
    }
}

/// `service account id ‖ 0x00 ‖ key id`; with an empty key id the prefix of one account's keys.
public struct ServiceAccountKeyKey: StoreKey, Sendable {
    public var accountID: Text
    public var keyID: Text

    public init(_ accountID: Text, _ keyID: Text = .empty) {
        self.accountID = accountID
        self.keyID = keyID
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: accountID)
        key.append(contentsOf: keyID.bytes)
    }
}

/// The 16 bytes of a session id.
public struct SessionKey: StoreKey, Sendable {
    public var sessionID: [UInt8]

    public init(_ sessionID: [UInt8]) { self.sessionID = sessionID }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: sessionID) }
}

/// `tenant ‖ 0x00 ‖ uid ‖ 0x00 ‖ session id`; with an empty session id the prefix of one user's sessions.
public struct UserSessionKey: StoreKey, Sendable {
    public var tenant: Text
    public var uid: Text
    public var sessionID: [UInt8]

    public init(_ tenant: Text, _ uid: Text, _ sessionID: [UInt8] = []) {
        self.tenant = tenant
        self.uid = uid
        self.sessionID = sessionID
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(terminated: uid)
        key.append(contentsOf: sessionID)
    }
}

/// `tenant ‖ 0x00 ‖ sequence`
public struct SequenceKey: StoreKey, Sendable {
    public var tenant: Text
    public var sequence: Int64

    public init(_ tenant: Text, _ sequence: Int64) {
        self.tenant = tenant
        self.sequence = sequence
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: UInt64(bitPattern: sequence))
    }
}

/// `sequence`
public struct RevocationKey: StoreKey, Sendable {
    public var sequence: Int64

    public init(_ sequence: Int64) { self.sequence = sequence }

    public func write(into key: inout KeyWriter) { key.append(bigEndian: UInt64(bitPattern: sequence)) }
}

/// `time (µs) ‖ server id ‖ row`: what each server counted, in the order of time.
public struct GuessRowKey: StoreKey, Sendable, Equatable {
    public var time: Timestamp
    public var serverID: UInt64
    public var row: UInt64

    public init(time: Timestamp, serverID: UInt64, row: UInt64) {
        self.time = time
        self.serverID = serverID
        self.row = row
    }

    /// A key as it lies in the store; of one that is too short the missing parts are 0.
    public init(stored key: UnsafeRawBufferPointer) {
        func part(_ index: Int) -> UInt64 {
            key.count < (index + 1) * 8
                ? 0 : UInt64(bigEndian: key.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        self.init(time: Timestamp(microseconds: Int64(clamping: part(0))), serverID: part(1), row: part(2))
    }

    public func write(into key: inout KeyWriter) {
        // Times before 1970 would sort last.
        key.append(bigEndian: UInt64(max(0, time.microseconds)))
        key.append(bigEndian: serverID)
        key.append(bigEndian: row)
    }
}

/// `tenant ‖ 0x00 ‖ hour (µs) ‖ toggle ‖ operation`
public struct DenialCountKey: StoreKey, Sendable {
    public var tenant: Text
    public var hour: Timestamp
    public var toggle: UInt8
    public var operation: Text

    public init(_ tenant: Text, hour: Timestamp, toggle: UInt8, operation: Text) {
        self.tenant = tenant
        self.hour = hour
        self.toggle = toggle
        self.operation = operation
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: UInt64(bitPattern: hour.microseconds))
        key.append(toggle)
        key.append(contentsOf: operation.bytes)
    }
}

/// `tenant ‖ 0x00 ‖ SHA-256 of the subject ‖ kind ‖ code's hash`; without the last or the last two parts a prefix.
public struct OobSubjectKey: StoreKey, Sendable {
    public var tenant: Text
    public var subject: [UInt8]
    public var kind: UInt8?
    public var codeHash: [UInt8]

    public init(_ tenant: Text, subject: [UInt8], kind: UInt8? = nil, codeHash: [UInt8] = []) {
        self.tenant = tenant
        self.subject = subject
        self.kind = kind
        self.codeHash = codeHash
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: subject)
        if let kind { key.append(kind) }
        key.append(contentsOf: codeHash)
    }
}

/// `tenant ‖ 0x00 ‖ time (µs) ‖ message id`: what is due is looked for tenant by tenant.
public struct OutboxDueKey: StoreKey, Sendable {
    public var time: Timestamp
    public var tenant: Text
    public var messageID: Text

    public init(_ time: Timestamp, _ tenant: Text, _ messageID: Text) {
        self.time = time
        self.tenant = tenant
        self.messageID = messageID
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: UInt64(bitPattern: time.microseconds))
        key.append(contentsOf: messageID.bytes)
    }
}

public import Base
public import Store

// The keys of the domain's tables, in addition to the general ones of Store.

/// `tenant ‖ 0x00 ‖ uid`
public struct UserKey: StoreKey, Hashable {
    public var tenant: Text
    public var uid: Text

    public init(_ tenant: Text, _ uid: Text) {
        self.tenant = tenant
        self.uid = uid
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated() else { return nil }
        self.init(tenant, key.remainingText())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: uid.bytes)
    }

    /// The length of the stored key.
    var byteCount: Int { tenant.byteCount + 1 + uid.byteCount }

    /// False for a key of a request that is longer than any user's, whose uid may be older than `uidMax`. The store
    /// refuses it (`.keySize`).
    var fitsStore: Bool { byteCount <= KeyWriter.byteCountMax }
}

/// `tenant ‖ 0x00 ‖ time (µs) ‖ uid`; without a uid a place between two times.
public struct UserTimeKey: StoreKey, Equatable {
    public var tenant: Text
    public var time: Timestamp
    public var uid: Text

    public init(_ tenant: Text, _ time: Timestamp, _ uid: Text = .empty) {
        self.tenant = tenant
        self.time = time
        self.uid = uid
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let time = key.bigEndian() else { return nil }
        self.init(tenant, Timestamp(microseconds: Int64(clamping: time)), key.remainingText())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        // Times before 1970 would sort last.
        key.append(bigEndian: UInt64(max(0, time.microseconds)))
        key.append(contentsOf: uid.bytes)
    }
}

/// `service account id ‖ 0x00 ‖ key id`; with an empty key id the prefix of one account's keys.
public struct ServiceAccountKeyKey: StoreKey {
    public var accountID: Text
    public var keyID: Text

    public init(_ accountID: Text, _ keyID: Text = .empty) {
        self.accountID = accountID
        self.keyID = keyID
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let accountID = key.terminated() else { return nil }
        self.init(accountID, key.remainingText())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: accountID)
        key.append(contentsOf: keyID.bytes)
    }
}

/// The 16 bytes of a session id.
public struct SessionKey: StoreKey {
    public var sessionID: [UInt8]

    public init(_ sessionID: [UInt8]) { self.sessionID = sessionID }

    public init?(stored bytes: UnsafeRawBufferPointer) { self.init([UInt8](bytes)) }

    public func write(into key: inout KeyWriter) { key.append(contentsOf: sessionID) }
}

/// `tenant ‖ 0x00 ‖ uid ‖ 0x00 ‖ session id`; with an empty session id the prefix of one user's sessions.
public struct UserSessionKey: StoreKey {
    public var tenant: Text
    public var uid: Text
    public var sessionID: [UInt8]

    public init(_ tenant: Text, _ uid: Text, _ sessionID: [UInt8] = []) {
        self.tenant = tenant
        self.uid = uid
        self.sessionID = sessionID
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let uid = key.terminated() else { return nil }
        self.init(tenant, uid, key.remainder())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(terminated: uid)
        key.append(contentsOf: sessionID)
    }
}

/// `tenant ‖ 0x00 ‖ sequence`
public struct SequenceKey: StoreKey {
    public var tenant: Text
    public var sequence: Int64

    public init(_ tenant: Text, _ sequence: Int64) {
        self.tenant = tenant
        self.sequence = sequence
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let sequence = key.bigEndian(), key.isAtEnd else { return nil }
        self.init(tenant, Int64(bitPattern: sequence))
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: UInt64(bitPattern: sequence))
    }
}

/// `sequence`
public struct RevocationKey: StoreKey {
    public var sequence: Int64

    public init(_ sequence: Int64) { self.sequence = sequence }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let sequence = key.bigEndian(), key.isAtEnd else { return nil }
        self.init(Int64(bitPattern: sequence))
    }

    public func write(into key: inout KeyWriter) { key.append(bigEndian: UInt64(bitPattern: sequence)) }
}

/// `time (µs) ‖ server id ‖ row`: what each server counted, in the order of time.
public struct GuessRowKey: StoreKey, Equatable {
    public var time: Timestamp
    public var serverID: UInt64
    public var row: UInt64

    public init(time: Timestamp, serverID: UInt64, row: UInt64) {
        self.time = time
        self.serverID = serverID
        self.row = row
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let time = key.bigEndian(), let serverID = key.bigEndian(), let row = key.bigEndian(), key.isAtEnd else {
            return nil
        }
        self.init(time: Timestamp(microseconds: Int64(clamping: time)), serverID: serverID, row: row)
    }

    public func write(into key: inout KeyWriter) {
        // Times before 1970 would sort last.
        key.append(bigEndian: UInt64(max(0, time.microseconds)))
        key.append(bigEndian: serverID)
        key.append(bigEndian: row)
    }
}

/// `tenant ‖ 0x00 ‖ hour (µs) ‖ toggle ‖ operation`
public struct DenialCountKey: StoreKey {
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

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let hour = key.bigEndian(), let toggle = key.byte() else { return nil }
        let time = Timestamp(microseconds: Int64(bitPattern: hour))
        self.init(tenant, hour: time, toggle: toggle, operation: key.remainingText())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(bigEndian: UInt64(bitPattern: hour.microseconds))
        key.append(toggle)
        key.append(contentsOf: operation.bytes)
    }
}

/// `tenant ‖ 0x00 ‖ SHA-256 of the subject ‖ kind ‖ code's hash`; without the last or the last two parts a prefix.
public struct OobSubjectKey: StoreKey {
    public var tenant: Text
    public var subject: [UInt8]
    public var kind: UInt8?
    public var codeHash: [UInt8]
    private static let subjectByteCount = 32

    public init(_ tenant: Text, subject: [UInt8], kind: UInt8? = nil, codeHash: [UInt8] = []) {
        self.tenant = tenant
        self.subject = subject
        self.kind = kind
        self.codeHash = codeHash
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let subject = key.bytes(Self.subjectByteCount) else { return nil }
        self.init(tenant, subject: subject, kind: key.byte(), codeHash: key.remainder())
    }

    public func write(into key: inout KeyWriter) {
        key.append(terminated: tenant)
        key.append(contentsOf: subject)
        if let kind { key.append(kind) }
        key.append(contentsOf: codeHash)
    }
}

/// `tenant ‖ 0x00 ‖ time (µs) ‖ message id`: due messages are looked for tenant by tenant.
///
/// The rows of a tenant's SMS come behind those of its mails, so that an SMS is found without a look at the mails that
/// wait. In the key of an SMS a high bit of the time is set. To an older server such a row is due in 146,000 years: it
/// leaves the SMS to newer servers.
public struct OutboxDueKey: StoreKey, Hashable {
    public var time: Timestamp
    public var tenant: Text
    public var messageID: Text
    /// False for a mail, and for an SMS that an older server queued.
    public var isSMS: Bool

    private static let smsBit: UInt64 = 1 << 62

    public init(_ time: Timestamp, _ tenant: Text, _ messageID: Text, isSMS: Bool = false) {
        self.time = time
        self.tenant = tenant
        self.messageID = messageID
        self.isSMS = isSMS
    }

    /// The place before all rows of the tenant's SMS.
    static func beforeSMS(of tenant: Text) -> OutboxDueKey {
        OutboxDueKey(Timestamp(microseconds: 0), tenant, .empty, isSMS: true)
    }

    public init?(stored bytes: UnsafeRawBufferPointer) {
        var key = KeyReader(bytes)
        guard let tenant = key.terminated(), let time = key.bigEndian() else { return nil }
        // A negative time has the bit, too. It is read as it is.
        let isSMS = time >> 62 == 1
        self.init(
            Timestamp(microseconds: Int64(bitPattern: isSMS ? time & ~Self.smsBit : time)), tenant,
            key.remainingText(), isSMS: isSMS)
    }

    public func write(into key: inout KeyWriter) {
        let time = UInt64(bitPattern: time.microseconds)
        key.append(terminated: tenant)
        key.append(bigEndian: isSMS ? time | Self.smsBit : time)
        key.append(contentsOf: messageID.bytes)
    }
}

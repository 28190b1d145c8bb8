import Base
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct KeysTests {
    private static let keys: [any StoreKey] = [
        UserKey("acme", "ann"), UserKey("", "ann"), TenantTextKey("acme", ""), TenantHashKey("acme", [1, 0, 2]),
        HashKey([0, 1]), TextKey("a"), TenantPrefix("acme"), TenantPrefix(""),
        ServiceAccountKeyKey("robot", "key"), SessionKey([1, 2, 3]), UserSessionKey("acme", "ann", [0, 0, 9]),
        SequenceKey("acme", 7), SequenceKey("", .max), RevocationKey(9), TimeKey(Timestamp(microseconds: 5)),
        GuessRowKey(time: Timestamp(microseconds: 5), serverID: 6, row: 7),
        DenialCountKey("acme", hour: Timestamp(microseconds: 3_600_000_000), toggle: 2, operation: "signUp"),
        OobSubjectKey("acme", subject: [UInt8](repeating: 0, count: 32), kind: 3, codeHash: [4, 5]),
        OobSubjectKey("acme", subject: [UInt8](repeating: 1, count: 32)),
        OutboxDueKey(Timestamp(microseconds: 5), "acme", "mail"),
        OutboxDueKey(Timestamp(microseconds: 5), "acme", "sms", isSMS: true),
        UserTimeKey("acme", Timestamp(microseconds: 5), "ann"),
    ]

    private func reread<Key: StoreKey>(_ key: Key, _ bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBytes { Key(stored: $0)?.bytes }
    }

    @Test func `Each type of keys is in the list`() throws {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let listed = Set(Self.keys.map { "\(type(of: $0))" })
        for path in ["Identity/Tables/Keys", "Store/Keys"] {
            let source = String(decoding: try #require(readFile("/\(root)/Sources/\(path).swift")), as: UTF8.self)
            for text in source.split(separator: "\npublic struct ").dropFirst() {
                let name = String(text.prefix { $0 != ":" })
                #expect(listed.contains(name), "\(name): add a key to `keys`")
            }
        }
    }

    @Test func whatAKeyWroteIsReadAsThatKey() {
        for key in Self.keys { #expect(reread(key, key.bytes) == key.bytes, "\(key)") }
    }

    @Test func `The rows of SMS come behind those of mails, and are in their order`() throws {
        let times = [0, 5, 6, 1_795_240_038_000_000].map { Timestamp(microseconds: $0) }
        let keys = [false, true].flatMap { isSMS in
            times.map { OutboxDueKey($0, "acme", "m", isSMS: isSMS) }
        }
        #expect(zip(keys, keys.dropFirst()).allSatisfy { $0.bytes.lexicographicallyPrecedes($1.bytes) })
        for key in keys {
            let found = key.bytes.withUnsafeBytes { OutboxDueKey(stored: $0) }
            #expect(found == key)
        }
        // Older servers see an SMS of a newer one as a mail of the far future.
        let far = OutboxDueKey(Timestamp(microseconds: 1 << 62 | 5), "acme", "m")
        #expect(OutboxDueKey(Timestamp(microseconds: 5), "acme", "m", isSMS: true).bytes == far.bytes)
    }

    /// A key with cut or changed bytes is read as another key of the kind, or as none; nothing traps.
    @Test func damagedKeysAreReadWithoutATrap() {
        for key in Self.keys {
            for end in 0..<key.bytes.count {
                let cut = Array(key.bytes[..<end])
                let found = reread(key, cut)
                #expect(found == nil || found == cut, "\(key) cut to \(end)")
            }
            for place in key.bytes.indices {
                var changed = key.bytes
                changed[place] ^= 0xFF
                _ = reread(key, changed)
            }
        }
    }
}

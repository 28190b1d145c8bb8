import Base
import Identity
import Messages
import Rules
import Store
import Synchronization
import TestSupport
import Testing

@testable import Service

/// A name that Users.BatchGet gets many times costs what it costs once.
@Suite struct RepeatedNamesTests {
    /// Counts the checks of records, for each table.
    private final class CheckCounter: RecordAuthenticator {
        private let inner = TestAuthenticator()
        private let counts = Mutex<[UInt8: Int]>([:])

        func tag(
            table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
        ) -> (UInt64, UInt64) {
            counts.withLock { $0[table, default: 0] += 1 }
            return inner.tag(table: table, key: key, value: value)
        }

        func count(of table: UInt8) -> Int { counts.withLock { $0[table] ?? 0 } }
    }

    private struct Answer {
        var users: [Text] = []
        var rest = UsersBatchGetResponse()
        /// How often a record of the users, and of the users by email and by phone number, was read.
        var reads: [Int] = []
    }

    private static let tables = [Tables.users.id, Tables.userByEmail.id, Tables.userByPhone.id]

    /// A store with the user "ann", who has an email, a phone number and, unless the hash is empty, a password.
    private static func withAnn(
        passwordHash: Text = "h",
        _ body: (_ get: ([UserName], _ byteCountMax: Int) throws -> Answer) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let counter = CheckCounter()
            var configuration = StoreConfiguration(directory: directory, tables: Tables.all)
            configuration.mapByteCount = 256 << 20
            let store = try Store(
                configuration, authenticator: counter, eventHash: testEventHash, onFatal: { _ in })
            defer { store.close() }
            let ann = account(
                "ann", email: "ann@example.com", phoneNumber: "+14155550101", passwordHash: passwordHash)
            try store.writeBlocking { transaction in
                let uid = Array("ann".utf8)
                try transaction.put(Tables.users, UserKey("acme", "ann"), ann.record)
                try transaction.put(Tables.userByEmail, TenantTextKey("acme", "ann@example.com"), uid)
                try transaction.put(Tables.userByPhone, TenantTextKey("acme", "+14155550101"), uid)
            }
            try body { names, byteCountMax in
                let before = tables.map { counter.count(of: $0) }
                var answer = Answer()
                try store.read { transaction in
                    let found = try transaction.users(named: names, tenantID: "acme", byteCountMax: byteCountMax)
                    answer.users = try found.users.map { try User(decoding: $0).uid }
                    answer.rest = found.rest
                }
                answer.reads = zip(tables, before).map { table, count in counter.count(of: table) - count }
                return answer
            }
        }
    }

    private static func uids(_ uids: Text...) -> [UserName] { uids.map { UserName(name: .uid($0)) } }

    private static func password(_ email: Text) -> UserName {
        UserName(name: .identity(ProviderIdentity(providerID: "password", rawID: email)))
    }

    private static func phone(_ number: Text) -> UserName {
        UserName(name: .identity(ProviderIdentity(providerID: "phone", rawID: number)))
    }

    @Test func `A row is read once however often it is named`() throws {
        try Self.withAnn { get in
            let hundred = try get((0..<100).flatMap { _ in Self.uids("ann") }, .max)
            #expect(hundred.users == ["ann"] && hundred.rest == UsersBatchGetResponse())
            #expect(hundred.reads == [1, 0, 0])
            var names = Self.uids("ann")
            names += [
                UserName(name: .email("ann@example.com")), UserName(name: .email("ANN@example.com")),
                UserName(name: .phoneNumber("+14155550101")), Self.phone("+14155550101"),
            ]
            let all = try get((0..<50).flatMap { _ in names }, .max)
            #expect(all.users == ["ann"] && all.rest == UsersBatchGetResponse())
            #expect(all.reads == [1, 1, 1])
        }
    }

    /// Whether there is a password stands in the user's row.
    @Test func `A row is read once for its email and its password`() throws {
        try Self.withAnn { get in
            let often = try get(
                (0..<100).map { Self.password($0 % 2 == 0 ? "ann@example.com" : "Ann@Example.com") }, .max)
            #expect(often.users == ["ann"] && often.rest == UsersBatchGetResponse() && often.reads == [1, 1, 0])
            let email = UserName(name: .email("ann@example.com"))
            for names in [[email, Self.password("ann@example.com")], [Self.password("ANN@example.com"), email]] {
                let both = try get(names + Self.uids("ann"), .max)
                #expect(both.users == ["ann"] && both.rest == UsersBatchGetResponse() && both.reads == [1, 1, 0])
            }
        }
    }

    @Test func `A user without a password is not found by one but by the email`() throws {
        try Self.withAnn(passwordHash: .empty) { get in
            let password = Self.password("ann@example.com")
            let answer = try get([password, UserName(name: .email("ann@example.com")), password], .max)
            #expect(answer.users == ["ann"] && answer.reads == [1, 1, 0])
            #expect(answer.rest.notFound == [password, password])
        }
    }

    @Test func `A name without a user is told as often as it was given`() throws {
        try Self.withAnn { get in
            let emails: [Text] = ["zoe@example.com", "ZOE@example.com"]
            let names = Self.uids("zoe", "ann", "zoe", "ann") + emails.map { UserName(name: .email($0)) }
            let answer = try get(names, .max)
            #expect(answer.users == ["ann"] && answer.rest.notRead.isEmpty)
            #expect(answer.rest.notFound == Self.uids("zoe", "zoe") + emails.map { UserName(name: .email($0)) })
        }
    }

    @Test func `Behind a full answer a name is not read even if it was read before`() throws {
        try Self.withAnn { get in
            let answer = try get(Self.uids("zoe", "ann", "zoe", "ann"), 1)
            #expect(answer.users == ["ann"] && answer.rest.notFound == Self.uids("zoe"))
            #expect(answer.rest.notRead == Self.uids("zoe", "ann"))
        }
    }
}

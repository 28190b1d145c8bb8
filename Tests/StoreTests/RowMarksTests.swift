import Base
import Messages
import TestSupport
import Testing

@testable import Store

@Suite struct RowMarksTests {
    private static let users = Table<TenantTextKey, StoredCount>(
        id: 20, name: "users", owner: .keyPrefix, purge: .withTenant, news: .marked)
    private static let sessions = Table<TextKey, StoredCount>(
        id: 21, name: "sessions", owner: .nobody, purge: .noTenant, news: .marked)
    private static let others = Table<TextKey, StoredCount>(id: 22, name: "others", owner: .nobody, purge: .noTenant)
    private static let tables = [users.declaration, sessions.declaration, others.declaration]

    private static let ada = TenantTextKey("a", "ada")
    private static let session = TextKey("s")

    /// A value that was made from a user and a session.
    private struct Fixture {
        let store: Store
        let marks: RowMarks
        let places: (RowMarks.Place, RowMarks.Place)

        init(_ store: Store) {
            self.store = store
            marks = RowMarks("logins", of: [users.declaration, sessions.declaration], in: store)
            places = (marks.place(of: users, ada), marks.place(of: sessions, session))
        }

        func made() throws -> Dated<Int> { try store.read { $0.dated(1) } }

        func isCurrent(_ dated: Dated<Int>) throws -> Bool {
            try store.read { marks.isCurrent(dated, places, in: $0) }
        }
    }

    @Test func `A value is current until one of its rows is changed`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            var value = try fixture.made()
            #expect(try fixture.isCurrent(value))
            try store.writeBlocking { try $0.put(Self.others, TextKey("s"), StoredCount(count: 1)) }
            #expect(try fixture.isCurrent(value), "a table that is not followed")
            try store.writeBlocking { try $0.put(Self.users, Self.ada, StoredCount(count: 1)) }
            #expect(try !fixture.isCurrent(value))
            value = try fixture.made()
            #expect(try fixture.isCurrent(value))
            try store.writeBlocking { try $0.put(Self.sessions, Self.session, StoredCount(count: 1)) }
            #expect(try !fixture.isCurrent(value))
            value = try fixture.made()
            try store.writeBlocking { _ = try $0.delete(Self.users, Self.ada) }
            #expect(try !fixture.isCurrent(value))
        }
    }

    @Test func `Changes of other rows leave nearly all values as they are`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            let value = try fixture.made()
            let keys = (0..<100).map { TenantTextKey("a", Text("user \($0)")) }
            let others = keys.filter { fixture.marks.place(of: Self.users, $0) != fixture.places.0 }
            try store.writeBlocking { transaction in
                for key in others { try transaction.put(Self.users, key, StoredCount(count: 1)) }
            }
            #expect(others.count >= 98)
            #expect(try fixture.isCurrent(value))
        }
    }

    @Test func `Keys are told apart by every byte, and by their table`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let marks = Fixture(store).marks
            let text: Text = "0123456789abcdef-"
            let changed = text.bytes.indices.map { index in
                var bytes = text.bytes
                bytes[index] ^= 1
                return TextKey(Text(unchecked: bytes))
            }
            let places = Set((changed + [TextKey(text)]).map { marks.place(of: Self.sessions, $0) })
            // Two of the eighteen may share a place by chance, but not all of them.
            #expect(places.count >= 16)
            #expect(marks.place(of: Self.sessions, TextKey(text)) != marks.place(of: Self.others, TextKey(text)))
        }
    }

    @Test func `Nothing is current in a write, which may have changed the rows`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            let value = try fixture.made()
            let marks = fixture.marks
            let isCurrent = try store.writeBlocking { transaction in
                marks.isCurrent(
                    value, (marks.place(of: Self.users, Self.ada), marks.place(of: Self.sessions, Self.session)),
                    in: transaction.reading)
            }
            #expect(!isCurrent)
            #expect(try fixture.isCurrent(value))
        }
    }

    @Test func `A failed write leaves values as they are`() throws {
        struct Stop: Error {}
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            let value = try fixture.made()
            #expect(throws: Stop.self) {
                try store.writeBlocking { transaction in
                    try transaction.put(Self.users, Self.ada, StoredCount(count: 1))
                    throw Stop()
                }
            }
            #expect(try fixture.isCurrent(value))
        }
    }

    @Test func `A change by another node is told as well`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            let value = try fixture.made()
            let change = StoreChange(
                tableID: Self.users.id, key: Self.ada.bytes, value: StoredCount(count: 2).encoded())
            try store.writeBlocking { try $0.apply([change]) }
            #expect(try !fixture.isCurrent(value))
        }
    }

    @Test func `A reader that began before the change cannot make its value current`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let fixture = Fixture(store)
            try store.read { transaction in
                let value = transaction.dated(1)
                try store.writeBlocking { try $0.put(Self.users, Self.ada, StoredCount(count: 1)) }
                let isOldCurrent = fixture.marks.isCurrent(value, fixture.places, in: transaction)
                let isNewCurrent = fixture.marks.isCurrent(transaction.dated(2), fixture.places, in: transaction)
                #expect(!isOldCurrent && !isNewCurrent)
            }
        }
    }
}

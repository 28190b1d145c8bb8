import Base
import Glibc
import Messages
import Rules
import Store
import Synchronization
import TestSupport
import Testing

@testable import Identity

/// All writes wait for the one that runs. So a write reads few API keys, however many there are.
@Suite struct KeySearchTests {
    /// Counts the API keys that are read or written on the writer's thread.
    private final class WriterReads: RecordAuthenticator {
        private let inner = TestAuthenticator()
        private let state = Mutex<(writer: pthread_t?, count: Int)>((nil, 0))

        func tag(
            table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
        ) -> (UInt64, UInt64) {
            if table == Tables.apiKeys.id {
                state.withLock { if $0.writer == pthread_self() { $0.count += 1 } }
            }
            return inner.tag(table: table, key: key, value: value)
        }

        /// Counts from now on. Must be called on the writer's thread.
        func begin() { state.withLock { $0 = (pthread_self(), 0) } }
        var count: Int { state.withLock { $0.count } }
    }

    private struct Scene {
        let fixture: Fixture
        let reads: WriterReads
        let directory: CallerDirectory

        func make(
            _ role: Role, _ tenants: Scope.Tenants = .all(true), by maker: Caller? = nil, validateOnly: Bool = false
        ) async throws -> ApiKey {
            let made = try await directory.create(
                WantedKey(role: role, scope: Scope(tenants: tenants), displayName: ""), by: maker,
                validateOnly: validateOnly, origin: .server)
            return made.key
        }

        func revoke(_ key: ApiKey, at directory: CallerDirectory? = nil) async -> String? {
            await refusal {
                _ = try await (directory ?? self.directory).revoke(
                    id: key.apiKeyID, validateOnly: false, origin: .server)
            }
        }

        /// The number of keys that the writer read or wrote for `body`.
        func writerReads(_ body: () async throws -> Void) async throws -> Int {
            try await fixture.store.write { [reads] _ in reads.begin() }
            try await body()
            return reads.count
        }

        /// The keys that the store does not have.
        func absent(of keys: [ApiKey]) throws -> [ApiKey] {
            try fixture.store.read { transaction in
                try keys.filter { try !transaction.exists(Tables.apiKeys, TextKey($0.apiKeyID)) }
            }
        }
    }

    private static func withScene(keysMax: Int = 100, _ body: (Scene) async throws -> Void) async throws {
        let reads = WriterReads()
        var limits = Limits()
        limits.administration.apiKeysPerTenantMax = keysMax
        let open: (String) throws -> Store = { directory in
            var configuration = StoreConfiguration(directory: directory, tables: Tables.all)
            configuration.mapByteCount = 256 << 20
            return try Store(configuration, authenticator: reads, eventHash: testEventHash, onFatal: { _ in })
        }
        try await withFixture(limits: limits, open: open) { fixture in
            try await fixture.makeTenant()
            let directory = CallerDirectory(resources: fixture.resources)
            try await body(Scene(fixture: fixture, reads: reads, directory: directory))
        }
    }

    @Test func `Another admin key is searched for outside of the write`() async throws {
        try await Self.withScene { scene in
            let first = try await scene.make(.projectAdmin)
            for _ in 0..<40 { _ = try await scene.make(.app) }
            // Another node knows no admin key.
            let other = CallerDirectory(resources: scene.fixture.resources)
            let refused = try await scene.writerReads {
                #expect(await scene.revoke(first, at: other) == "LAST_ADMIN_KEY")
            }
            let second = try await scene.make(.projectAdmin)
            let revoked = try await scene.writerReads { #expect(await scene.revoke(first, at: other) == nil) }
            #expect(refused < 10 && revoked < 10)
            #expect(other.adminKeys.ids == [second.apiKeyID])
            #expect(await scene.revoke(second) == "LAST_ADMIN_KEY")
        }
    }

    /// A search goes on where its last step ended.
    @Test func `An admin key is found behind thousands of other keys`() async throws {
        try await Self.withScene { scene in
            let first = try await scene.make(.projectAdmin)
            let last = ApiKey(apiKeyID: "~", role: .projectAdmin, scope: Scope(tenants: .all(true)))
            try await scene.fixture.store.write { transaction in
                for number in 0..<2_500 {
                    let key = ApiKey(apiKeyID: Text("key\(number)"), role: .app)
                    try transaction.put(Tables.apiKeys, TextKey(key.apiKeyID), StoredApiKey(apiKey: key))
                }
                try transaction.put(Tables.apiKeys, TextKey(last.apiKeyID), StoredApiKey(apiKey: last))
            }
            #expect(await scene.revoke(first) == nil)
            #expect(await scene.revoke(last) == "LAST_ADMIN_KEY")
        }
    }

    private static let makerKey = ApiKey(
        apiKeyID: "maker", role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme")))
    private static let makerHash = [UInt8](repeating: 1, count: 32)
    private static let maker = Caller(makerKey, secretHash: makerHash)

    @Test func `The ended keys of a tenant are searched for outside of the write`() async throws {
        try await Self.withScene(keysMax: 3) { scene in
            let acme = Scope.Tenants.tenantID("acme")
            var keys: [ApiKey] = []
            for _ in 0..<24 { keys.append(try await scene.make(.app, acme)) }
            // In no index of the tenant's keys, so that it is not counted with them.
            let stored = StoredApiKey(apiKey: Self.makerKey, secretHash: Self.makerHash)
            try await scene.fixture.store.write { try $0.put(Tables.apiKeys, TextKey("maker"), stored) }
            func makeOne(validateOnly: Bool = false) async -> String? {
                await refusal { _ = try await scene.make(.app, acme, by: Self.maker, validateOnly: validateOnly) }
            }
            for validateOnly in [true, false] {
                let refused = try await scene.writerReads {
                    #expect(await makeOne(validateOnly: validateOnly) == "TOO_MANY_API_KEYS")
                }
                #expect(refused < 10)
            }
            for key in keys.dropLast(2).reversed() {
                scene.fixture.clock.advance(by: .seconds(1))
                #expect(await scene.revoke(key) == nil)
            }
            let checked = try await scene.writerReads { #expect(await makeOne(validateOnly: true) == nil) }
            #expect(try scene.absent(of: keys).isEmpty)
            let made = try await scene.writerReads { #expect(await makeOne() == nil) }
            #expect(checked < 10 && made < 10)
            // The key that was revoked first made room.
            #expect(try scene.absent(of: keys) == [keys[21]])
            #expect(await makeOne() == "TOO_MANY_API_KEYS")
        }
    }

    @Test func `A key whose end was put off since the search is not deleted`() async throws {
        try await Self.withScene(keysMax: 1) { scene in
            let key = try await scene.make(.app, .tenantID("acme"))
            let (limits, now) = (scene.fixture.resources.limits, scene.fixture.now)
            let refused = await refusal {
                try await scene.fixture.store.write { transaction in
                    try transaction.makeRoom(
                        for: key, by: Self.maker, ended: [key.apiKeyID], limits: limits, now: now, validateOnly: false)
                }
            }
            #expect(refused == "TOO_MANY_API_KEYS")
            #expect(try scene.absent(of: [key]).isEmpty)
        }
    }
}

import Base
import Glibc
import Identity
import Service
import TestSupport
import Testing

@testable import Store

/// A backup keeps the pages of everything that is deleted while it is taken.
@Suite struct BackupRoomTests {
    private static let large = [UInt8](repeating: 7, count: 64 << 10)

    /// Puts a row that takes 17 pages. The table holds notes, and this is none.
    private static func put(_ number: Int, _ server: TestServer) async throws {
        let key = TimeKey(Timestamp(microseconds: Int64(number)))
        try await server.project.store.write { try $0.put(Tables.revocationTimes, key, large) }
    }

    private static func delete(_ number: Int, _ server: TestServer) async throws {
        let key = TimeKey(Timestamp(microseconds: Int64(number)))
        _ = try await server.project.store.write { try $0.delete(Tables.revocationTimes, key) }
    }

    /// Puts rows until there is no room for one more. `deleting`: deletes each at once.
    private static func fill(_ server: TestServer, from first: Int = 1_000, deleting: Bool = false) async throws {
        for number in first..<first + 10_000 {
            try await put(number, server)
            if deleting { try await delete(number, server) }
        }
    }

    @Test func `A backup during which the store runs out of room is given up`() async throws {
        try await withServer(configure: { $0.store.mapByteCount = 16 << 20 }) { server in
            // More than fits between LMDB and the reader, so that the snapshot lasts.
            for number in 0..<50 { try await Self.put(number, server) }
            let backup = try await server.project.backups.begin(.rpc, origin: .server)
            for _ in 0..<2 { #expect(try await backup.next() != nil) }
            server.project.backups.endStalled()
            #expect(server.project.backups.isRunning)
            await #expect(throws: StoreError.full) { try await Self.fill(server, deleting: true) }
            server.project.backups.endStalled()
            #expect(!server.project.backups.isRunning && server.project.backups.failures.value == 1)
            await #expect(throws: Failure.self) { while try await backup.next() != nil {} }
            // The thread that makes the copy notices it soon.
            try await until("there is room again") { (try? await Self.put(1_000, server)) != nil }
        }
    }

    @Test func `A backup of a store without room is taken all the same`() async throws {
        try await withServer(configure: { $0.store.mapByteCount = 16 << 20 }) { server in
            await #expect(throws: StoreError.full) { try await Self.fill(server) }
            let backup = try await server.project.backups.begin(.rpc, origin: .server)
            #expect(try await backup.next() != nil)
            await #expect(throws: StoreError.full) { try await Self.fill(server, from: 50_000) }
            server.project.backups.endStalled()
            while try await backup.next() != nil {}
            #expect(server.project.backups.failures.value == 0)
        }
    }
}

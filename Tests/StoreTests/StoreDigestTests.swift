import Base
import TestSupport
import Testing

@testable import Store

/// Digests tell stores apart that differ in a row, and no others.
@Suite struct StoreDigestTests {
    private func digests(
        _ edit: @escaping @Sendable (borrowing WriteTransaction) throws -> Void
    ) throws -> [StoreDigest.Table] {
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: JournaledNodes.tables)
            defer { store.close() }
            try store.writeBlocking {
                for number in 0..<UInt8(3) { try $0.put(JournaledNodes.values, [number], [number, 1]) }
            }
            try store.writeBlocking { try edit($0) }
            return try store.digest().tables
        }
    }

    @Test func equalRowsHaveEqualDigestsAndNoOthersDo() throws {
        let untouched = try digests { _ in }
        #expect(untouched.first { $0.name == "values" }?.rowCount == 3)
        #expect(try digests { try $0.put(JournaledNodes.values, [1], [1, 1]) } == untouched)
        let others: [[StoreDigest.Table]] = [
            try digests { try $0.put(JournaledNodes.values, [1], [1, 2]) },
            try digests { try $0.put(JournaledNodes.values, [7], []) },
            try digests { try $0.delete(JournaledNodes.values, [2]) },
            // Bytes of the key and bytes of the record are told apart.
            try digests {
                try $0.delete(JournaledNodes.values, [2])
                try $0.put(JournaledNodes.values, [2, 2], [1])
            },
        ]
        for (index, other) in others.enumerated() {
            #expect(other != untouched, "\(index)")
            for again in others[(index + 1)...] { #expect(other != again) }
        }
    }

    @Test func aStoreOutsideOfAClusterHasNoPosition() async throws {
        try await withJournaledNodes(1) { cluster in
            try await cluster.nodes[0].store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            #expect(try cluster.nodes[0].store.digest().place?.position == 2)
        }
        try withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: JournaledNodes.tables)
            defer { store.close() }
            #expect(try store.digest().place == nil)
        }
    }
}

import Glibc
import Store
import TestSupport
import Testing

/// Random operations on a store and on a dictionary: they must never disagree.
@Suite struct StoreModelTests {
    private enum Change: Sendable {
        case put([UInt8], [UInt8])
        case putIfAbsent([UInt8], [UInt8])
        case delete([UInt8])
        case deleteAll(prefix: [UInt8], limit: Int)

        func apply(to transaction: borrowing WriteTransaction) throws -> Int {
            switch self {
            case .put(let key, let value):
                try transaction.put(blobs, key, value)
                return 1
            case .putIfAbsent(let key, let value): return try transaction.put(ifAbsent: blobs, key, value) ? 1 : 0
            case .delete(let key): return try transaction.delete(blobs, key) ? 1 : 0
            case .deleteAll(let prefix, let limit):
                return try transaction.deleteAll(blobs, prefix: prefix, limit: limit)
            }
        }

        func apply(to model: inout [[UInt8]: [UInt8]]) -> Int {
            switch self {
            case .put(let key, let value):
                model[key] = value
                return 1
            case .putIfAbsent(let key, let value):
                if model[key] != nil { return 0 }
                model[key] = value
                return 1
            case .delete(let key): return model.removeValue(forKey: key) == nil ? 0 : 1
            case .deleteAll(let prefix, let limit):
                let keys = model.keys.filter { $0.starts(with: prefix) }.sorted { $0.lexicographicallyPrecedes($1) }
                for key in keys.prefix(limit) { model[key] = nil }
                return min(keys.count, limit)
            }
        }
    }

    private func change(_ random: inout SeededGenerator) -> Change {
        let key = random.bytes(1 + random.below(4), below: 4)
        switch random.below(10) {
        case 0..<5: return .put(key, random.bytes(random.below(random.below(20) == 0 ? 9_000 : 400)))
        case 5: return .putIfAbsent(key, random.bytes(random.below(40)))
        case 6..<9: return .delete(key)
        default: return .deleteAll(prefix: Array(key.prefix(random.below(3))), limit: random.below(20))
        }
    }

    @Test func aStoreBehavesLikeADictionary() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("StoreModelTests seed \(seed)")
        var random = SeededGenerator(seed: seed)
        try withTemporaryDirectory { directory in
            var store = try openTestStore(at: directory, tables: testTables)
            defer { store.close() }
            var model: [[UInt8]: [UInt8]] = [:]
            for round in 0..<300 {
                let changes = (0..<(1 + random.below(20))).map { _ in change(&random) }
                struct Undone: Error {}
                if random.below(5) == 0 {
                    #expect(throws: Undone.self) {
                        try store.writeBlocking { transaction in
                            for change in changes { _ = try change.apply(to: transaction) }
                            throw Undone()
                        }
                    }
                } else {
                    let results = try store.writeBlocking { transaction in
                        try changes.map { try $0.apply(to: transaction) }
                    }
                    #expect(results == changes.map { $0.apply(to: &model) }, "seed \(seed), round \(round)")
                }
                try expectEqual(store, model, random.bytes(random.below(3), below: 4), seed)
                if random.below(60) == 0 {
                    store.close()
                    store = try openTestStore(at: directory, tables: testTables)
                }
            }
        }
    }

    private func expectEqual(_ store: Store, _ model: [[UInt8]: [UInt8]], _ prefix: [UInt8], _ seed: UInt64) throws {
        var found: [[UInt8]: [UInt8]] = [:]
        var order: [[UInt8]] = []
        try store.read { transaction in
            #expect(try transaction.count(blobs) == model.count, "seed \(seed)")
            try transaction.scan(blobs, prefix: prefix) { row in
                let key = try row.key
                found[key] = [UInt8](row.value)
                order.append(key)
                return true
            }
        }
        #expect(found == model.filter { $0.key.starts(with: prefix) }, "seed \(seed)")
        #expect(order == order.sorted { $0.lexicographicallyPrecedes($1) }, "seed \(seed)")
    }
}

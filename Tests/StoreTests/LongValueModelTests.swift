import Base
import Messages
import TestSupport
import Testing

@testable import Store

/// Random changes of short and long values, on a store and on a dictionary: they never disagree, and no piece is left.
@Suite struct LongValueModelTests {
    private struct Undone: Error {}

    private enum Change: Sendable {
        case put([UInt8], [UInt8])
        case putIfAbsent([UInt8], [UInt8])
        case session([UInt8], deviceNameByteCount: Int)
        case delete([UInt8])
        case deleteAll(prefix: [UInt8])

        func apply(to transaction: borrowing WriteTransaction, _ model: inout Model) throws {
            switch self {
            case .put(let key, let value):
                try transaction.put(blobs, key, value)
                try transaction.put(LongValueTests.keyed, Self.userKey(key), value)
                model.values[key] = value
            case .putIfAbsent(let key, let value):
                let isNew = try transaction.put(ifAbsent: blobs, key, value)
                #expect(isNew == (model.values[key] == nil))
                if isNew {
                    try transaction.put(LongValueTests.keyed, Self.userKey(key), value)
                    model.values[key] = value
                }
            case .session(let key, let count):
                // The key determines the owner: a row never changes its owner.
                let tenant: Text = key.count % 2 == 0 ? "a" : "b"
                let name = Text(String(repeating: "x", count: count))
                let session = StoredSession(tenantID: tenant, uid: "u", deviceName: name)
                try transaction.put(LongValueTests.byField, key, session)
                model.sessions[key] = name
            case .delete(let key):
                #expect(try transaction.delete(blobs, key) == (model.values[key] != nil))
                try transaction.delete(LongValueTests.keyed, Self.userKey(key))
                try transaction.delete(LongValueTests.byField, key)
                (model.values[key], model.sessions[key]) = (nil, nil)
            case .deleteAll(let prefix):
                let keys = model.values.keys.filter { $0.starts(with: prefix) }
                let count = try transaction.deleteAll(blobs, prefix: prefix, limit: .max)
                #expect(count == keys.count)
                for key in keys {
                    try transaction.delete(LongValueTests.keyed, Self.userKey(key))
                    model.values[key] = nil
                }
            }
        }

        static func userKey(_ key: [UInt8]) -> UserKey {
            UserKey(tenant: key.count % 2 == 0 ? "a" : "b", id: UInt64(key.reduce(1) { $0 * 4 + Int($1) }))
        }
    }

    private struct Model {
        var values: [[UInt8]: [UInt8]] = [:]
        var sessions: [[UInt8]: Text] = [:]
    }

    private func change(_ random: inout SeededGenerator) -> Change {
        let key = random.bytes(1 + random.below(3), below: 4)
        let edges = [0, 4_062, 4_063, 4_064, 8_126, 8_127, 12_189, 2_022, 2_040]
        let length = random.below(2) == 0 ? edges[random.below(edges.count)] : random.below(30_000)
        let value = [UInt8](repeating: UInt8(random.below(256)), count: length) + random.bytes(random.below(3))
        switch random.below(12) {
        case 0..<5: return .put(key, value)
        case 5: return .putIfAbsent(key, value)
        case 6, 7: return .session(key, deviceNameByteCount: length)
        case 8..<11: return .delete(key)
        default: return .deleteAll(prefix: Array(key.prefix(1 + random.below(2))))
        }
    }

    @Test func aStoreWithLongValuesBehavesLikeADictionary() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("LongValueModelTests seed \(seed)")
        var random = SeededGenerator(seed: seed)
        try withTemporaryDirectory { directory in
            var store = try openTestStore(at: directory, tables: LongValueTests.tables)
            defer { store.close() }
            var model = Model()
            for round in 0..<200 {
                let changes = (0..<(1 + random.below(8))).map { _ in change(&random) }
                if random.below(5) == 0 {
                    #expect(throws: Undone.self) {
                        try store.writeBlocking { [model] transaction in
                            var other = model
                            for change in changes { try change.apply(to: transaction, &other) }
                            throw Undone()
                        }
                    }
                } else {
                    model = try store.writeBlocking { [model] transaction in
                        var changed = model
                        for change in changes { try change.apply(to: transaction, &changed) }
                        return changed
                    }
                }
                try expectEqual(store, model, random.bytes(random.below(3), below: 4), "seed \(seed), round \(round)")
                if random.below(40) == 0 {
                    store.close()
                    let report = try LongValueTests.report(directory)
                    #expect(report.isSound, "seed \(seed), round \(round): \(report.lines)")
                    store = try openTestStore(at: directory, tables: LongValueTests.tables)
                }
            }
            let last = model
            try store.writeBlocking { transaction in
                var model = last
                for key in Set(last.values.keys).union(last.sessions.keys) {
                    try Change.delete(key).apply(to: transaction, &model)
                }
            }
            #expect(try LongValueTests.pieceCount(store) == 0, "seed \(seed)")
            // No write took a sound row for a damaged one.
            #expect(try store.read { try $0.isMended() }, "seed \(seed)")
        }
    }

    private func expectEqual(_ store: Store, _ model: Model, _ prefix: [UInt8], _ place: String) throws {
        let wanted = model.values.filter { $0.key.starts(with: prefix) }
        for isReversed in [false, true] {
            var found: [[UInt8]: [UInt8]] = [:]
            var order: [[UInt8]] = []
            try store.read { transaction in
                try transaction.scan(blobs, prefix: prefix, reversed: isReversed) { row in
                    let key = try row.key
                    found[key] = [UInt8](row.value)
                    order.append(key)
                    return true
                }
            }
            let sorted = order.sorted { $0.lexicographicallyPrecedes($1) }
            #expect(found == wanted, "\(place)")
            #expect(order == (isReversed ? sorted.reversed() : sorted), "\(place)")
        }
        try store.read { transaction in
            let count = try transaction.count(blobs)
            #expect(count == model.values.count, "\(place)")
            for (key, value) in wanted {
                let isSame = try transaction.withValue(LongValueTests.keyed, Change.userKey(key)) {
                    value.elementsEqual($0)
                }
                #expect(isSame == true, "\(place)")
            }
            for (key, name) in model.sessions {
                let session = try transaction.get(LongValueTests.byField, key)
                #expect(session?.deviceName == name, "\(place)")
            }
            for tenant: Text in ["a", "b"] {
                let (sum, counted) = (
                    try transaction.usage(ofTenant: tenant), try transaction.countedUsage(ofTenant: tenant)
                )
                #expect(sum == counted, "\(place)")
            }
        }
    }
}

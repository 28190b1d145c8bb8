import Base
import Crypto
import Glibc
import Journal
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// A cluster in which the store of one node is damaged: the damage reaches no other node.
@Suite(.serialized) struct DamagedSnapshotTests {
    /// Runs `body` with a sound node, and with the directory of a node that has stopped, one of whose records is
    /// damaged.
    private func withDamage(
        _ body: (LocalEngine, _ sound: Store, _ damaged: String, JournalPlace, _ new: String) async throws -> Void
    ) async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<3).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0])
            try engine.join(paths[1])
            let sound = try engine.node(paths[0])
            defer { close(sound) }
            try await sound.fill(200)
            let other = try engine.node(paths[1])
            _ = try await other.contents()
            let place = try other.journalPlace()
            close(other)
            try damageRecords(in: paths[1], filledWith: 77)
            try await body(engine, sound, paths[1], try #require(place), paths[2])
        }
    }

    /// Alters each copy of this record that is in the file, because only one of them is in use.
    private func damageRecords(in directory: String, filledWith byte: UInt8) throws {
        let path = directory + "/data.mdb"
        var bytes = try PlainFile.read(path)
        let record = [UInt8](repeating: byte, count: 500)
        var (index, found) = (0, 0)
        while index + record.count <= bytes.count {
            if bytes[index] == byte, bytes[index..<index + record.count].elementsEqual(record) {
                bytes[index] ^= 1
                found += 1
                index += record.count
            } else {
                index += 1
            }
        }
        #expect(found > 0)
        let file = open(path, O_WRONLY)
        guard file >= 0 else { throw FileError(path: path, call: "open", code: errno) }
        defer { Glibc.close(file) }
        try PrivateFile.writeAll(bytes, to: file, path: path)
    }

    @Test func `A damaged node makes no snapshot, and leaves it to another one`() async throws {
        try await withDamage { engine, sound, path, _, _ in
            let damaged = try engine.node(path)
            defer { close(damaged) }
            let problem = SnapshotProblem.damagedHere(.corrupt(table: "values"))
            #expect(throws: problem) { try engine.makeSnapshot(of: damaged) }
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot WHERE NOT complete") == 0)
            #expect(try engine.makeSnapshot(of: sound) != nil)
        }
    }

    /// Makes the file of a stopped store the newest snapshot without a look at its records, as older nodes did.
    private func putSnapshot(_ engine: LocalEngine, of directory: String, at place: JournalPlace) throws {
        let seal = JournalSeal(clusterID: place.clusterID, masterKey: engine.masterKey, random: .system)
        let id = RandomSource.system.bytes(SnapshotSeal.idByteCount)
        let tables = try engine.snapshotTables()
        let bytes = try PlainFile.read(directory + "/data.mdb")
        let sealed = try seal.snapshot(id, at: place.mark).seal(bytes, part: 0, isLast: true)
        let isClaimed = try tables.claim(id, at: place.mark) == .claimed
        let isAdded = try tables.add(sealed, part: 0, isLast: true, to: id)
        let isComplete = try tables.complete(id, parts: 1, bytes: UInt64(bytes.count), before: place.mark)
        #expect(isClaimed && isAdded && isComplete)
    }

    /// Each piece of a long value is a record of its own, and each of those that are left is sound.
    @Test func `A node does not join by a snapshot in which a piece of a long value is missing`() async throws {
        try await withLocalEngine { engine, directory in
            let (path, new) = ("\(directory)/0", "\(directory)/1")
            try engine.beginCluster(in: path)
            let store = try engine.node(path)
            let long = [UInt8](repeating: 7, count: 20_000)
            try await store.write { try $0.put(LocalEngine.values, [1], long) }
            let place = try store.journalPlace()
            // The pieces are each node's own: no other node hears of this.
            try await store.write { transaction in
                let keys = try transaction.reading.keys(of: Schema.pieces, after: nil, limit: 100)
                #expect(keys.count == 5)
                try transaction.delete(Schema.pieces, keys[2])
            }
            close(store)
            try putSnapshot(engine, of: path, at: try #require(place))
            #expect(throws: SnapshotProblem.damaged) { try engine.join(new) }
            #expect(access(new + "/data.mdb", F_OK) != 0 && !Joining.isInterrupted(in: new))
        }
    }

    @Test func `A node does not join by a snapshot with a damaged record, but by the next one`() async throws {
        try await withDamage { engine, sound, path, place, new in
            try putSnapshot(engine, of: path, at: place)
            #expect(throws: SnapshotProblem.damaged) { try engine.join(new) }
            #expect(access(new + "/data.mdb", F_OK) != 0 && !Joining.isInterrupted(in: new))
            let made = try engine.makeSnapshot(of: sound)
            #expect(made != nil)
            try engine.join(new)
            let joined = try engine.node(new)
            defer { close(joined) }
            let (expected, found) = (try await sound.contents(), try await joined.contents())
            #expect(found == expected)
        }
    }
}

import Base
import Messages
import TestSupport

@testable import Store

/// A store in which one long value is damaged, as if the disk had returned something else than was written. The value
/// is that of the tenant "a".
struct DamagedLongValue: Sendable {
    enum Damage: CaseIterable, Sendable {
        case missing, firstMissing, swapped, older, longer, renamed, markVersion, markMAC, markLength
    }

    /// Whose the row is, and what says so.
    enum Owner: CaseIterable, Sendable { case nobody, key, field }

    let directory: String
    let owner: Owner

    static let pieceCount = 5

    /// The table, to put bytes into it that are none of its records.
    var table: Table<[UInt8], [UInt8]> {
        let declared =
            switch owner {
            case .nobody: blobs.declaration
            case .key: LongValueTests.keyed.declaration
            case .field: LongValueTests.byField.declaration
            }
        return Table(id: declared.id, name: declared.name, owner: declared.owner, purge: declared.purge)
    }

    func key(_ number: UInt8) -> [UInt8] {
        owner == .key ? UserKey(tenant: "a", id: UInt64(number)).bytes : [number]
    }

    /// A value whose pieces are all different.
    func value(_ seed: UInt8, byteCount: Int = 20_000) -> [UInt8] {
        let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 / 4_063 &* 16 &+ Int(seed)) & 0x7F }
        guard owner == .field else { return bytes }
        let session = StoredSession(
            tenantID: "a", uid: "u", deviceName: Text(unchecked: bytes.map { $0 % 26 + 0x61 }))
        var buffer = ByteBuffer()
        session.encode(into: &buffer)
        return [UInt8](buffer.readable)
    }

    func open() throws -> Store { try openTestStore(at: directory, tables: LongValueTests.tables) }

    func report() throws -> StoreReport { try LongValueTests.report(directory) }

    /// Makes the store, with a short value under key 2, and damages the long value under key 1. Nobody has it open.
    func make(_ damage: Damage) throws {
        let mark = try makeStore(damage)
        switch damage {
        case .markVersion: flipBit(at: -RecordSeal.byteCount, of: mark)
        case .markMAC: flipBit(at: -1, of: mark)
        case .markLength: flipBit(at: 16, of: mark)
        default: break
        }
    }

    /// Returns the mark without its version and its MAC.
    private func makeStore(_ damage: Damage) throws -> [UInt8] {
        let store = try open()
        defer { store.close() }
        let (old, new, short) = (value(1), value(2), value(3, byteCount: 30))
        try store.writeBlocking { [self] transaction in
            try transaction.put(table, key(1), old)
            try transaction.put(table, key(2), short)
        }
        let keys = try store.read { try $0.keys(of: Schema.pieces, after: nil, limit: 100) }
        let older = try store.read { try $0.get(Schema.pieces, keys[1]) } ?? []
        try store.writeBlocking { [self] transaction in
            try transaction.put(table, key(1), new)
            switch damage {
            case .missing: try transaction.delete(Schema.pieces, keys[1])
            case .firstMissing: try transaction.delete(Schema.pieces, keys[0])
            case .swapped: try transaction.put(Schema.pieces, keys[1], transaction.get(Schema.pieces, keys[2]) ?? [])
            case .older: try transaction.put(Schema.pieces, keys[1], older)
            case .longer: try transaction.put(Schema.pieces, keys[4], [UInt8](repeating: 3, count: 4_063))
            case .renamed:
                let piece = try transaction.get(Schema.pieces, keys[1]) ?? []
                try transaction.delete(Schema.pieces, keys[1])
                try transaction.put(Schema.pieces, [keys[1][0] ^ 1] + keys[1].dropFirst(), piece)
            case .markVersion, .markMAC, .markLength: break
            }
        }
        let tag = key(1).withUnsafeBytes { key in
            new.withUnsafeBytes { TestAuthenticator().tag(table: table.id, key: key, value: $0) }
        }
        var mark: [UInt8] = []
        for half in [tag.0, tag.1] { withUnsafeBytes(of: half.littleEndian) { mark.append(contentsOf: $0) } }
        withUnsafeBytes(of: UInt32(new.count).littleEndian) { mark.append(contentsOf: $0) }
        return mark
    }

    /// Alters each copy that LMDB has of these bytes, because only one of them is in use.
    private func flipBit(at offset: Int, of part: [UInt8]) {
        let path = directory + "/data.mdb"
        var file = contents(of: path)
        for start in offsets(of: part, in: file) { file[start + offset] ^= 1 }
        write(file, to: path)
    }
}

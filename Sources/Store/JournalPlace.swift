internal import Base
public import Journal

/// A store's place in its cluster's journal. The store keeps it in the same transaction as the changes of the entries.
public struct JournalPlace: Equatable, Sendable {
    public static let clusterIDByteCount = 16
    static let key = [UInt8]("journal".utf8)
    private static let byteCount = clusterIDByteCount + 8 + 32

    public let clusterID: [UInt8]
    public let mark: JournalMark

    public init(clusterID: [UInt8], mark: JournalMark) {
        // Proof: whoever makes one drew the id, or read it and counted its bytes.
        precondition(clusterID.count == Self.clusterIDByteCount, "a cluster's id of \(clusterID.count) bytes")
        self.clusterID = clusterID
        self.mark = mark
    }

    public var position: UInt64 { mark.position }

    var encoded: [UInt8] {
        var bytes = clusterID
        bytes.append(bigEndian: mark.position)
        return bytes + mark.hash.bytes
    }

    init(decoding bytes: [UInt8]) throws(StoreError) {
        guard bytes.count == Self.byteCount, let hash = JournalHash(bytes: bytes[24...]) else {
            throw .corrupt(table: "meta")
        }
        let position = bytes[16..<24].bigEndianNumber
        self.init(clusterID: Array(bytes[..<16]), mark: JournalMark(position: position, hash: hash))
    }
}

extension ReadTransaction {
    /// Nil for a store that is in no cluster.
    public func journalPlace() throws(StoreError) -> JournalPlace? {
        guard let bytes = try get(Schema.meta, JournalPlace.key) else { return nil }
        return try JournalPlace(decoding: bytes)
    }
}

extension WriteTransaction {
    func setJournalPlace(_ place: JournalPlace) throws(StoreError) {
        try put(Schema.meta, JournalPlace.key, place.encoded)
    }

    /// Makes the store the first of a new cluster or, with nil, takes it out of its cluster. Only while the store is
    /// opened without its journal.
    public func setJournalPlace(_ place: JournalPlace?) throws(StoreError) {
        if let place { try setJournalPlace(place) } else { try delete(Schema.meta, JournalPlace.key) }
    }
}

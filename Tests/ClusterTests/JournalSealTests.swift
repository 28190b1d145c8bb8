import Base
import Crypto
import Journal
import Store
import TestSupport
import Testing

@testable import Cluster

@Suite struct JournalSealTests {
    private let masterKey = MasterKey.generate(random: .system)
    private let clusterID = [UInt8](repeating: 3, count: 16)
    private var seal: JournalSeal { JournalSeal(clusterID: clusterID, masterKey: masterKey, random: .system) }
    private let id = BatchID(SIMD2(5, 6))

    private func open(_ row: (head: JournalHead, body: [UInt8]), with seal: JournalSeal) throws -> [UInt8] {
        try row.body.span.withUnsafeBytes { body throws(JournalEngineError) in try seal.open(body, of: row.head) }
    }

    @Test func whatIsSealedOpensInItsPlace() throws {
        let row = try seal.seal([1, 2, 3], id: id, over: seal.beginning)
        #expect(row.head.mark.position == 1 && row.head.previousHash == seal.beginning.hash)
        #expect(try open(row, with: seal) == [1, 2, 3])
        let empty = try seal.seal([], id: id, over: row.head.mark)
        #expect(try open(empty, with: seal) == [])
        #expect(row.body.firstRange(of: [1, 2, 3]) == nil)
    }

    /// The engine's operator knows how hashes are made, but has no key.
    @Test func aRowThatWasAlteredOrMovedDoesNotOpen() throws {
        let row = try seal.seal([1, 2, 3], id: id, over: seal.beginning)
        for place in row.body.indices {
            var body = row.body
            body[place] ^= 1
            #expect(throws: JournalEngineError.self) { try open((row.head, body), with: seal) }
        }
        let second = try seal.seal([4], id: id, over: row.head.mark)
        let moved = JournalHead(
            mark: second.head.mark, previousHash: second.head.previousHash, batchID: second.head.batchID)
        #expect(throws: JournalEngineError.self) { try open((moved, row.body), with: seal) }
        let renamed = JournalHead(mark: row.head.mark, previousHash: row.head.previousHash, batchID: BatchID(.zero))
        #expect(throws: JournalEngineError.self) { try open((renamed, row.body), with: seal) }
    }

    @Test func anotherClusterOrMasterKeyOpensNothing() throws {
        let row = try seal.seal([1, 2, 3], id: id, over: seal.beginning)
        let other = JournalSeal(clusterID: [UInt8](repeating: 4, count: 16), masterKey: masterKey, random: .system)
        #expect(throws: JournalEngineError.self) { try open(row, with: other) }
        let key = MasterKey.generate(random: .system)
        let stranger = JournalSeal(clusterID: clusterID, masterKey: key, random: .system)
        #expect(throws: JournalEngineError.self) { try open(row, with: stranger) }
        #expect(stranger.keyCheck != seal.keyCheck && other.keyCheck != seal.keyCheck)
    }

    @Test func theLargestEntryCanBeSealed() throws {
        let largest = [UInt8](repeating: 7, count: JournalLimits().entryByteCountMax + (1 << 19))
        let row = try seal.seal(largest, id: id, over: seal.beginning)
        #expect(try open(row, with: seal) == largest)
        let tooLarge = [UInt8](repeating: 7, count: JournalSeal.byteCountMax)
        #expect(throws: CryptoError.outOfRange) { try seal.seal(tooLarge, id: id, over: seal.beginning) }
    }
}

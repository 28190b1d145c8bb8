import Base
import Crypto
import Journal
import TestSupport
import Testing

@testable import Cluster

@Suite struct SnapshotSealTests {
    private let masterKey = MasterKey.generate(random: .system)
    private let id = [UInt8](repeating: 9, count: 16)
    private let mark = JournalMark(position: 7, hash: JournalHash(SIMD4(1, 2, 3, 4)))

    private func seal(
        cluster: UInt8 = 3, id: [UInt8]? = nil, at mark: JournalMark? = nil, _ masterKey: MasterKey? = nil
    ) -> SnapshotSeal {
        JournalSeal(
            clusterID: [UInt8](repeating: cluster, count: 16), masterKey: masterKey ?? self.masterKey, random: .system
        ).snapshot(id ?? self.id, at: mark ?? self.mark)
    }

    private func open(
        _ body: [UInt8], _ seal: SnapshotSeal, part: UInt64 = 2, isLast: Bool = false
    ) throws -> [UInt8] {
        try body.span.withUnsafeBytes { body throws(SnapshotProblem) in
            try seal.open(body, part: part, isLast: isLast)
        }
    }

    @Test func aPartOpensInItsPlaceOnly() throws {
        let body = try seal().seal([1, 2, 3, 4, 5], part: 2, isLast: false)
        #expect(try open(body, seal()) == [1, 2, 3, 4, 5])
        #expect(body.firstRange(of: [1, 2, 3, 4, 5]) == nil)
        let altered = SnapshotProblem.altered(part: 2)
        for bit in [0, 3, 80, body.count * 8 - 1] {
            var other = body
            other[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: altered) { try open(other, seal()) }
        }
        #expect(throws: altered) { try open(Array(body.dropLast()), seal()) }
        #expect(throws: altered) { try open([], seal()) }
        #expect(throws: SnapshotProblem.altered(part: 3)) { try open(body, seal(), part: 3) }
        #expect(throws: altered) { try open(body, seal(), isLast: true) }
        #expect(throws: altered) { try open(body, seal(cluster: 4)) }
        #expect(throws: altered) { try open(body, seal(id: [UInt8](repeating: 8, count: 16))) }
        #expect(throws: altered) { try open(body, seal(at: JournalMark(position: 8, hash: mark.hash))) }
        let hash = JournalHash(SIMD4(1, 2, 3, 5))
        #expect(throws: altered) { try open(body, seal(at: JournalMark(position: 7, hash: hash))) }
        #expect(throws: altered) { try open(body, seal(.generate(random: .system))) }
    }

    @Test func theLastPartMayBeEmpty() throws {
        let body = try seal().seal([], part: 2, isLast: true)
        #expect(try open(body, seal(), isLast: true) == [])
    }

    private func seal(_ masterKey: MasterKey) -> SnapshotSeal { seal(cluster: 3, masterKey) }
}

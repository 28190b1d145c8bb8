import Base
import Crypto
import Messages
import Testing

@testable import Identity

/// Proofs that applications hold: servers before and after an upgrade open each other's.
@Suite struct ProofSealTests {
    private static let key = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
    private static let now = Timestamp(microseconds: 1_700_000_000_000_000)

    /// A proof as every version seals it.
    private static func proof(_ kind: String, _ content: some Message, tenantID: String = "acme") throws -> Text {
        let context = [UInt8](kind.utf8) + [0] + [UInt8](tenantID.utf8)
        return Text(
            unchecked: Base64.url.encode(
                try key.seal(Secret(content.encoded()), context: context, random: .system)))
    }

    private static func pending(endsAfter time: Duration) throws -> Text {
        try proof(
            "pending credential",
            SealedPendingCredential(tenantID: "acme", rawID: "1", expiresAtMicros: (now + time).microseconds))
    }

    private static func open(_ token: Text, tenantID: Text = "acme") -> SealedPendingCredential? {
        ProofSeal<SealedPendingCredential>(sealing: key, random: .system, epoch: [])
            .content(of: token.bytes, tenantID: tenantID, now: now)
    }

    @Test func `The form of both kinds stays as it is`() throws {
        let temporary = SealedTemporaryProof(
            tenantID: "acme", phoneNumber: "+4930", expiresAtMicros: (Self.now + .minutes(1)).microseconds)
        let seal = ProofSeal<SealedTemporaryProof>(sealing: Self.key, random: .system, epoch: [])
        let token = try Self.proof("temporary proof", temporary)
        #expect(seal.content(of: token.bytes, tenantID: "acme", now: Self.now) == temporary)
        #expect(seal.content(of: try seal.token(temporary).bytes, tenantID: "acme", now: Self.now) == temporary)
        #expect(Self.open(try Self.pending(endsAfter: .minutes(1)))?.rawID == "1")
        #expect(Self.open(token) == nil, "of the other kind")
    }

    /// The restored store does not know which proofs were used after its backup, and nor does a copy of the store that
    /// was restored elsewhere.
    @Test func `A proof from before a restore is void in the restored store`() throws {
        let content = SealedTemporaryProof(
            tenantID: "acme", phoneNumber: "+4930", expiresAtMicros: (Self.now + .minutes(1)).microseconds)
        let epochs: [[UInt8]] = [[], [UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16)]
        let seals = epochs.map { ProofSeal<SealedTemporaryProof>(sealing: Self.key, random: .system, epoch: $0) }
        for (index, seal) in seals.enumerated() {
            let token = try seal.token(content)
            for (other, opening) in seals.enumerated() {
                let opened = opening.content(of: token.bytes, tenantID: "acme", now: Self.now)
                #expect((opened == content) == (index == other), "\(index), \(other)")
            }
        }
    }

    @Test func `A proof is for one tenant and a short time`() throws {
        let token = try Self.pending(endsAfter: .minutes(1))
        #expect(Self.open(token, tenantID: "other") == nil)
        #expect(Self.open(try Self.pending(endsAfter: .zero)) == nil, "over")
        #expect(Self.open(try Self.pending(endsAfter: .minutes(60))) == nil, "of a clock that is far ahead")
        #expect(Self.open("") == nil)
        #expect(Self.open(Text(unchecked: Array(token.bytes.dropLast(2)))) == nil)
        // Its tenant is in the content as well as in the seal.
        let stranger = SealedPendingCredential(
            tenantID: "other", rawID: "1", expiresAtMicros: (Self.now + .minutes(1)).microseconds)
        #expect(Self.open(try Self.proof("pending credential", stranger)) == nil)
    }
}

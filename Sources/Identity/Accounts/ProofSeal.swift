import Base
import Crypto
import Messages
import Store

/// The content of a proof that an application holds: it is sealed, for one tenant and a short time, and never stored.
protocol SealedProof: Message {
    /// A part of the context of the seal. It never changes: proofs that applications hold are opened with it.
    static var kind: String { get }
    /// How long a user has to come back with the proof.
    static var lifetime: Duration { get }

    var tenantID: Text { get }
    var expiresAtMicros: Int64 { get }
}

/// Seals proofs of one kind, and opens them. Any thread.
///
/// The seal is bound to the store's epoch. A restored store has forgotten which proofs were used since its backup, so
/// none from before the restore is good in it. Nor is a proof of one restored copy good in another one.
struct ProofSeal<Content: SealedProof>: Sendable {
    let sealing: SealingKey
    let random: RandomSource
    /// `Store.epoch()`
    let epoch: [UInt8]

    /// The proof as the application holds it: base64url.
    func token(_ content: Content) throws -> Text {
        let context = context(content.tenantID)
        return Text(
            unchecked: Base64.url.encode(
                try sealing.seal(Secret(content.encoded()), context: context, random: random)))
    }

    /// The content of a proof of this tenant; nil for a proof that is over, for another tenant's or kind's, and for
    /// other bytes.
    func content(of token: some Collection<UInt8>, tenantID: Text, now: Timestamp) -> Content? {
        guard let sealed = Base64.url.decode(token),
            let opened = try? sealing.open(sealed, context: context(tenantID)),
            let content = try? opened.withBytes({ try Content(stored: $0) }), content.tenantID == tenantID
        else { return nil }
        let end = Timestamp(microseconds: content.expiresAtMicros)
        guard now < end, end - now <= Content.lifetime + TimeKeeping.slack else { return nil }
        return content
    }

    /// No tenant's id has a zero byte. The context has no epoch in a store that was never restored: servers before this
    /// one sealed without it.
    private func context(_ tenantID: Text) -> [UInt8] {
        [UInt8](Content.kind.utf8) + [0] + tenantID.bytes + (epoch.isEmpty ? [] : [0] + epoch)
    }
}

extension WriteTransaction {
    /// Records that a proof was used, until it can be valid nowhere. Returns false, and records nothing, if the proof
    /// was used before.
    func recordUse(
        of key: HashKey, in table: Table<HashKey, StoredUsedTokenID>, until end: Timestamp
    ) throws -> Bool {
        guard try put(ifAbsent: table, key, StoredUsedTokenID(expiresAtMicros: end.microseconds)) else { return false }
        try scheduleExpiry(at: end + StoredUsedTokenID.keptAfterEnd, table, key)
        return true
    }
}

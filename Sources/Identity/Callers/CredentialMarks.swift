import Base
import Rules
import Store

/// Tells whether a caller that a connection remembers may still be used without a look at the store: whether the rows
/// that it was made from are as they were.
///
/// A credential shares its mark with a few others. If one of those changes, the caller is looked up again, which costs
/// time only. Any thread may ask; the writer's thread moves the marks.
struct CredentialMarks: Sendable {
    enum Kind: UInt8 {
        case apiKey, serviceAccount, certificate
    }

    private let marks = ChangeMarks(count: 4_096)

    func move(_ changed: ChangedCredentials, to snapshot: Snapshot) {
        for (kind, id) in changed.names { marks.move(Self.hash(kind, id), to: snapshot) }
    }

    func isCurrent(asOf snapshot: Snapshot, _ places: CallerPlaces) -> Bool {
        marks.isUnchanged(places.shown, since: snapshot) && marks.isUnchanged(places.certificate, since: snapshot)
            && marks.isUnchanged(places.quotaOwner, since: snapshot)
    }

    /// `certificate`: that of the connection. A mapping that is made for it later binds the caller as well.
    func places(of caller: Caller, _ certificate: ClientCertificate?) -> CallerPlaces {
        let shown: Int
        switch CredentialName(of: caller) {
        case .apiKey(let id): shown = Self.hash(.apiKey, id)
        case .serviceAccount(let id, _): shown = Self.hash(.serviceAccount, id)
        case .certificate(let id): shown = Self.hash(.certificate, id)
        case .both(let caller, _): return places(of: caller, certificate)
        }
        let bound = certificate.map { Self.hash(.certificate, $0.identity.mappingID) }
        // The caller has the quotas of its quota's owner in it.
        let owner = caller.quotaOwner.map { owner in
            let record = Self.record(ofCaller: owner.id)
            return Self.hash(record.kind, record.id)
        }
        return CallerPlaces(shown: shown, certificate: bound ?? shown, quotaOwner: owner ?? shown)
    }

    /// Seeded anew in each process, so that nobody can choose ids that share a mark with another's.
    private static func hash(_ kind: Kind, _ id: Text) -> Int {
        var hasher = Hasher()
        hasher.combine(kind.rawValue)
        hasher.combine(id)
        return hasher.finalize()
    }
}

/// The marks of a remembered caller.
public struct CallerPlaces: Sendable {
    fileprivate let shown: Int
    fileprivate let certificate: Int
    fileprivate let quotaOwner: Int
}

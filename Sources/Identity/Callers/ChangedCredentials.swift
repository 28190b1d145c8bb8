import Base
public import Rules
import Store

/// The credentials that a commit changed, of whatever kind.
public struct ChangedCredentials: Sendable {
    private var apiKeyIDs: Set<Text> = []
    private var serviceAccountIDs: Set<Text> = []
    private var certificateMappingIDs: Set<Text> = []

    public init() {}

    /// The tables whose rows make a credential.
    static let tables = [
        Tables.apiKeys.declaration, Tables.serviceAccounts.declaration, Tables.serviceAccountKeys.declaration,
        Tables.certificateMappings.declaration,
    ]

    init(_ announcement: Announcement) {
        apiKeyIDs.formUnion(announcement.keys(of: Tables.apiKeys).map(\.text))
        serviceAccountIDs.formUnion(announcement.keys(of: Tables.serviceAccounts).map(\.text))
        // A JWT that names no key is good with any key of its account.
        serviceAccountIDs.formUnion(announcement.keys(of: Tables.serviceAccountKeys).map(\.accountID))
        certificateMappingIDs.formUnion(announcement.keys(of: Tables.certificateMappings).map(\.text))
    }

    public mutating func formUnion(_ other: ChangedCredentials) {
        apiKeyIDs.formUnion(other.apiKeyIDs)
        serviceAccountIDs.formUnion(other.serviceAccountIDs)
        certificateMappingIDs.formUnion(other.certificateMappingIDs)
    }

    public var isEmpty: Bool { apiKeyIDs.isEmpty && serviceAccountIDs.isEmpty && certificateMappingIDs.isEmpty }

    /// Whether the caller may be another one now, or none.
    public func concern(_ caller: Caller) -> Bool {
        switch CredentialName(of: caller) {
        case .both(let shown, let mapped): concern(shown) || concern(mapped)
        case .apiKey(let id): apiKeyIDs.contains(id)
        case .serviceAccount(let id, _): serviceAccountIDs.contains(id)
        case .certificate(let id): certificateMappingIDs.contains(id)
        }
    }

    /// The names of all of them, as `CredentialMarks` knows them.
    var names: [(CredentialMarks.Kind, Text)] {
        apiKeyIDs.map { (.apiKey, $0) } + serviceAccountIDs.map { (.serviceAccount, $0) }
            + certificateMappingIDs.map { (.certificate, $0) }
    }
}

/// The rows that a caller was made from.
enum CredentialName {
    case apiKey(Text)
    case serviceAccount(Text, keyID: Text)
    case certificate(mappingID: Text)
    /// An API key or a JWT together with a certificate.
    case both(shown: Caller, mapped: Caller)

    init(of caller: Caller) {
        self =
            switch caller.credential {
            case .apiKey: .apiKey(caller.id)
            case .serviceAccount(let keyID):
                .serviceAccount(ServiceAccountSigners.accountID(ofEmail: caller.id), keyID: keyID)
            case .certificate(let mappingID): .certificate(mappingID: mappingID)
            case .both(let shown, let mapped): .both(shown: shown, mapped: mapped)
            }
    }
}

import Base
import Messages
import Synchronization

/// Ids of lasting project-admin keys, the newest first: where one of them is looked for first. A key may have ended, or
/// been changed by another node, since it was noted.
final class KnownAdminKeys: Sendable {
    private static let countMax = 16
    private let noted = Mutex<[Text]>([])

    var ids: [Text] { noted.withLock { $0 } }

    /// Adds a key, or takes it out when it is not, or no longer, such a key.
    func note(_ key: ApiKey) {
        noted.withLock { ids in
            ids.removeAll { $0 == key.apiKeyID }
            guard key.isLastingAdmin else { return }
            ids.insert(key.apiKeyID, at: 0)
            if ids.count > Self.countMax { ids.removeLast() }
        }
    }
}

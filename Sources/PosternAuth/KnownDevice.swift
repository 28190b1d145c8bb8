import Base
import Synchronization

/// The newest device token. With it the server recognises this device at the next sign-in, so that attackers who guess
/// the password do not make the user wait. It is not a credential.
final class KnownDevice: Sendable {
    private let newest: Mutex<Text>

    init(token: Text = .empty) { self.newest = Mutex(token) }

    var token: Text { newest.withLock { $0 } }

    /// Keeps the token of an answer. An answer without a token changes nothing.
    func remember(_ token: Text) {
        if !token.isEmpty { newest.withLock { $0 = token } }
    }
}

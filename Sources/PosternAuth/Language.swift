import Base
import Synchronization

/// The language of mails, which the application may change at any time.
final class Language: Sendable {
    private let chosen: Mutex<Text>

    init(code: Text) { self.chosen = Mutex(code) }

    var code: Text {
        get { chosen.withLock { $0 } }
        set { chosen.withLock { $0 = newValue } }
    }
}

import CSodium

/// libsodium as a whole.
enum Sodium {
    /// Picks the fastest code for this processor; without this call, slower code runs.
    static let start: Void = {
        precondition(sodium_init() >= 0, "sodium_init failed")
    }()
}

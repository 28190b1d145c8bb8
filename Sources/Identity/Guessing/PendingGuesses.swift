import Rules

/// The notes of guesses that wait to be written, each with its number. Pure.
///
/// A tenant with many different guesses in a second does not keep out those of others: see `TenantShares`.
struct PendingGuesses<Note: Hashable & Sendable>: Sendable {
    private var notes: [UInt64: [Note: Int]] = [:]
    private var shares: TenantShares<UInt64>

    init(countMax: Int) { shares = TenantShares(countMax: countMax) }

    /// Returns whether it is now the only note, and how many notes were dropped: this one, or another.
    mutating func add(_ note: Note, of tenant: UInt64) -> (isFirst: Bool, droppedCount: Int) {
        if let count = notes[tenant]?[note] {
            notes[tenant]?[note] = count + 1
            return (false, 0)
        }
        var droppedCount = 0
        switch shares.verdict(for: tenant) {
        case .hasRoom: break
        case .refused: return (false, 1)
        case .takes(let other):
            guard let dropped = notes[other]?.keys.first else { return (false, 1) }
            droppedCount = notes[other]?.removeValue(forKey: dropped) ?? 0
            if notes[other]?.isEmpty == true { notes[other] = nil }
            shares.left(other)
        }
        notes[tenant, default: [:]][note] = 1
        shares.entered(tenant)
        return (shares.count == 1, droppedCount)
    }

    var all: [(note: Note, count: Int)] {
        notes.values.flatMap { $0.map { (note: $0.key, count: $0.value) } }
    }
}

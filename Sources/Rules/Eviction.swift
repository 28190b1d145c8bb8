import Base

/// Chooses the entries of a full table to evict, so that neither one tenant nor many cheap entries push out the entries
/// that matter.
///
/// A quarter is evicted: first entries that hold nobody back yet, then the others. In each group, the tenants with the
/// most entries lose entries down to a common number, and a tenant loses those that were quiet longest.
enum Eviction {
    struct Entry {
        let tenant: UInt64
        /// Whether the entry holds somebody back: it took several wrong guesses to make.
        let isStrict: Bool
        let lastAt: Timestamp
    }

    /// The indices of the entries to evict; at least one, unless the table is empty.
    static func victims(_ entries: [Entry]) -> [Int] {
        var wanted = max(1, entries.count / 4)
        var victims: [Int] = []
        for isStrict in [false, true] {
            let found = choose(wanted, entries.indices.filter { entries[$0].isStrict == isStrict }, entries)
            victims += found
            wanted -= found.count
        }
        return victims
    }

    /// Chooses `wanted` of the entries at these indices, or all if there are fewer.
    private static func choose(_ wanted: Int, _ indices: [Int], _ entries: [Entry]) -> [Int] {
        guard indices.count > wanted else { return indices }
        let tenants = Dictionary(grouping: indices) { entries[$0].tenant }.values
        let kept = keptCount(wanted, tenants.map(\.count))
        // All entries above the common number are evicted; then the tenants give one more each until there are enough.
        var victims: [Int] = []
        var next: [Int] = []
        for var indices in tenants where indices.count >= kept {
            indices.sort { entries[$0].lastAt < entries[$1].lastAt }
            victims += indices[..<(indices.count - kept)]
            next.append(indices[indices.count - kept])
        }
        next.sort { entries[$0].lastAt < entries[$1].lastAt }
        return victims + next.prefix(wanted - victims.count)
    }

    /// The smallest number of entries that tenants with more of them can keep without giving more than `wanted`.
    private static func keptCount(_ wanted: Int, _ counts: [Int]) -> Int {
        var range = 0..<(counts.max() ?? 0)
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if counts.reduce(0, { $0 + max(0, $1 - middle) }) <= wanted {
                range = range.lowerBound..<middle
            } else {
                range = middle + 1..<range.upperBound
            }
        }
        return range.lowerBound
    }
}

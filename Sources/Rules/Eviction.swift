import Base

/// Which entries of a full table go, so that neither one tenant nor many cheap entries push out what counts.
///
/// A quarter goes: first entries that hold nobody back yet, then the others. Among each, tenants with the most entries
/// lose theirs down to a common number, and of a tenant go those that were quiet longest.
enum Eviction {
    struct Entry {
        let tenant: UInt64
        /// Holds somebody back: it took several wrong guesses to make.
        let isStrict: Bool
        let lastAt: Timestamp
    }

    /// The indices of the entries that go; of a table that is not empty at least one.
    static func victims(_ entries: [Entry]) -> [Int] {
        var wanted = max(1, entries.count / 4)
        var victims: [Int] = []
        for isStrict in [false, true] {
            let found = longest(wanted, entries.indices.filter { entries[$0].isStrict == isStrict }, entries)
            victims += found
            wanted -= found.count
        }
        return victims
    }

    /// `wanted` of these indices, or all.
    private static func longest(_ wanted: Int, _ indices: [Int], _ entries: [Entry]) -> [Int] {
        guard indices.count > wanted else { return indices }
        let tenants = Dictionary(grouping: indices) { entries[$0].tenant }.values
        let kept = keptCount(wanted, tenants.map(\.count))
        // Above the common number all go; the tenants then give one more each until there are enough.
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

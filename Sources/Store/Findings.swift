/// The faults of a store: the count of each kind, and its first places.
public struct Findings: Sendable {
    private static let placesMax = 5
    // Not bytes: texts of our own.
    private var counts: [String: (count: Int, places: [String])] = [:]

    public var isEmpty: Bool { counts.isEmpty }

    /// `place` is a page or a row. It is never a name, an address or a value.
    public mutating func add(_ fault: String, at place: String) {
        var entry = counts[fault] ?? (0, [])
        entry.count += 1
        if entry.places.count < Self.placesMax { entry.places.append(place) }
        counts[fault] = entry
    }

    /// One line for each kind of fault.
    public var lines: [String] {
        counts.sorted { $0.key < $1.key }.map { fault, entry in
            let more = entry.count > entry.places.count ? ", …" : ""
            return "damaged: \(fault): \(entry.count) (\(entry.places.joined(separator: ", "))\(more))"
        }
    }
}

public import Base

/// A value that loses its meaning: from some time on it means no more than a new value.
public protocol Fading {
    var meaningfulUntil: Timestamp { get }
}

/// Values by name, up to a maximum count. When the table is full, a new name takes the place of a value that has no
/// meaning any more, or of the one that has it for the shortest time, among some that are looked at. So a flood of
/// names does not make the table forget everything at once, and costs no more than looking at these few.
///
/// Pure: times come in with the values.
public struct ForgetfulTable<Name: Hashable, Value: Fading> {
    fileprivate struct Place {
        var name: Name
        var value: Value
    }

    private let countMax: Int
    private var places: [Place] = []
    private var indices: [Name: Int] = [:]
    private var hand = 0
    private static var lookedAtMax: Int { 16 }

    /// `countMax`: 1 at least.
    public init(countMax: Int) { self.countMax = max(1, countMax) }

    public var count: Int { places.count }

    public subscript(name: Name) -> Value? {
        get { indices[name].map { places[$0].value } }
        set {
            guard let value = newValue else { return remove(name) }
            if let index = indices[name] {
                places[index].value = value
                return
            }
            if places.count >= countMax { remove(places[leastMeaningful()].name) }
            indices[name] = places.count
            places.append(Place(name: name, value: value))
        }
    }

    private mutating func remove(_ name: Name) {
        guard let index = indices.removeValue(forKey: name) else { return }
        // The last place moves to the one that is free now.
        let last = places.removeLast()
        guard index < places.count else { return }
        places[index] = last
        indices[last.name] = index
    }

    /// The index of the value that loses its meaning first, among the next places, in turn. The table is not empty.
    private mutating func leastMeaningful() -> Int {
        var found = hand % places.count
        for _ in 0..<min(Self.lookedAtMax, places.count) {
            hand = (hand + 1) % places.count
            if places[hand].value.meaningfulUntil < places[found].value.meaningfulUntil { found = hand }
        }
        return found
    }
}

extension ForgetfulTable: Sendable where Name: Sendable, Value: Sendable {}
extension ForgetfulTable.Place: Sendable where Name: Sendable, Value: Sendable {}

import Base
import JSON

/// What became of the users of a `user patch`.
struct PatchedUsers: Record {
    static let columns = ["changed", "unchanged", "rejected"]

    let changed: Int64
    let unchanged: Int64
    let rejected: Int64

    var id: String { String(changed) }

    var json: JSONValue {
        ["changed": .integer(changed), "unchanged": .integer(unchanged), "rejected": .integer(rejected)]
    }
}

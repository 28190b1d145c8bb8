import Base
import JSON

/// The result of a `user patch`: the numbers of users.
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

import Journal

/// What a node of a cluster knows of its journal.
public struct JournalStatus: Equatable, Sendable {
    /// Whether the engine answers.
    public internal(set) var isConnected = false
    /// Whether what the store holds is known to be the journal's past.
    public private(set) var isConfirmed = false
    /// The newest entry that the store holds.
    public private(set) var position: UInt64 = 0
    /// Why the connection was lost last, or not made. Empty while there is one.
    public private(set) var trouble = ""

    mutating func note(_ node: JournalNode) {
        position = node.mark?.position ?? 0
        isConfirmed = node.isServing
        if isConfirmed { trouble = "" }
    }

    mutating func lost(_ reason: String) {
        isConnected = false
        isConfirmed = false
        trouble = reason
    }
}

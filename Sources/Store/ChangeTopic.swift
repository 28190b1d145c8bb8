public import Base

/// What a write is about, for those who wait for it to change: a kind and a name, the same on every node.
public struct ChangeTopic: Hashable, Sendable {
    /// What sort of thing changed: "user", for example.
    public let kind: Text
    /// Which of them; empty where there is only one.
    public let name: [UInt8]

    public init(_ kind: Text, _ name: [UInt8] = []) {
        self.kind = kind
        self.name = name
    }
}

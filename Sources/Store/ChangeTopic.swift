public import Base

/// The thing that a write changes, for callers that wait for a change: a kind and a name, the same on every node.
public struct ChangeTopic: Hashable, Sendable {
    /// The kind of thing that changed: "user", for example.
    public let kind: Text
    /// Which thing of that kind changed; empty if there is only one.
    public let name: [UInt8]

    public init(_ kind: Text, _ name: [UInt8] = []) {
        self.kind = kind
        self.name = name
    }
}

public import Base

extension Secret {
    /// The key as a call's `authorization`.
    public var bearer: Text { withBytes { Text(unchecked: [UInt8]("Bearer ".utf8) + [UInt8]($0)) } }
}

import Base

/// The only issuer for which a provider's key signs. `{tenantid}` in it stands for the user's directory.
///
/// The text is split when the key set is read. A token is then compared, and nothing is searched for on an event loop.
struct ProviderKeyIssuer: Sendable {
    private let start: [UInt8]
    private let end: [UInt8]
    private let hasDirectory: Bool

    init(_ text: Text) {
        let parts = URLTemplate.split(text, at: "{tenantid}")
        self.start = Array(parts?.before ?? text.bytes[...])
        self.end = Array(parts?.after ?? [])
        self.hasDirectory = parts != nil
    }

    /// Whether `issuer` is this issuer for a user of `directory`.
    func matches(_ issuer: Text, directory: Text) -> Bool {
        let middle = hasDirectory ? directory.bytes : []
        let bytes = issuer.bytes
        guard bytes.count == start.count + middle.count + end.count else { return false }
        return bytes.starts(with: start) && bytes[start.count...].starts(with: middle)
            && bytes.suffix(end.count).elementsEqual(end)
    }
}

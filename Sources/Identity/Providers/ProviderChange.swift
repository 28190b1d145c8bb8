import Base
public import Messages

/// A masked change of a provider's configuration. Pure; `ProviderRules` checks the result.
public struct ProviderChange: Sendable {
    let wanted: Provider
    private let mask: UpdateMask<Provider>

    public init(_ wanted: Provider, _ mask: UpdateMask<Provider>) {
        self.wanted = wanted
        self.mask = mask
    }

    var changesSecret: Bool { mask.contains(.clientSecret) }

    /// The names of the masked fields, for the event log.
    var fieldNames: Text { mask.names }

    func apply(to provider: inout Provider) {
        for path in mask.paths where path != .clientSecret { provider.copy(path, from: wanted) }
        // The secret is sealed beside the configuration.
        if changesSecret { provider.hasClientSecret = !wanted.clientSecret.isEmpty }
    }
}

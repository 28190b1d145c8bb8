public import Base

/// The restrictions of an API key: until when and from where it may be used. Nil leaves a restriction as it is.
public struct KeyRestrictions: Sendable {
    /// 0: never.
    public var expiresAtMicros: Int64?
    /// Empty: from everywhere.
    public var allowedAddresses: [Text]?
    /// An earlier end of the previous secret; 0: at once.
    public var previousSecretUntilMicros: Int64?

    public init(
        expiresAtMicros: Int64? = nil, allowedAddresses: [Text]? = nil, previousSecretUntilMicros: Int64? = nil
    ) {
        (self.expiresAtMicros, self.allowedAddresses) = (expiresAtMicros, allowedAddresses)
        self.previousSecretUntilMicros = previousSecretUntilMicros
    }

    /// INVALID_EXPIRY, INVALID_ADDRESS_RANGE.
    func check(limits: Limits, now: Timestamp) throws(Failure) {
        if let expiresAtMicros, expiresAtMicros != 0, expiresAtMicros <= now.microseconds {
            throw .invalid(.invalidExpiry, field: "expires_at_micros", "must be in the future, or 0 for never")
        }
        let addresses = allowedAddresses ?? []
        // An address and its prefix take 49 bytes at most.
        let areGood = addresses.allSatisfy { $0.byteCount <= 64 && IPNetwork($0.string) != nil }
        guard areGood, addresses.count <= limits.addressRangesPerKeyMax else {
            throw .invalid(
                .invalidAddressRange, field: "allowed_addresses",
                "must be addresses or prefixes such as 192.0.2.0/24, at most \(limits.addressRangesPerKeyMax)")
        }
    }
}

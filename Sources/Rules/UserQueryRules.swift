public import Base
import JSON
public import Messages

// The conditions that a query may have, and the index that answers it. Pure.

/// A query of users that was checked: its conditions, and the order of its users.
public struct UserQuery: Sendable {
    /// The index that is scanned for a query; its order is the order of the users.
    public enum Index: Sendable {
        case uid
        case creation
        case email
        case phoneNumber
        /// An identity, which at most one user has.
        case identity(ProviderInfo)
    }

    public var filter = UserFilter()
    public var index = Index.uid
    public var isDescending = false
    /// The bytes that a page may read, if that is fewer than for other lists: parsing claims is long work.
    public let bytesReadMax: Int

    /// INVALID_QUERY.
    public init(_ request: UsersQueryRequest, limits: Limits) throws(Failure) {
        let filter = try Self.filter(request, limits: limits)
        bytesReadMax = filter.claimName.isEmpty ? .max : limits.administration.claimBytesReadMax
        self.filter = filter
        isDescending = request.descending
        index = Self.index(request, filter)
    }

    private static func filter(_ request: UsersQueryRequest, limits: Limits) throws(Failure) -> UserFilter {
        try check(request.emailPrefix, max: limits.emailMax, field: "email_prefix")
        try check(request.emailPart, max: limits.emailMax, field: "email_part")
        try check(request.displayNamePrefix, max: limits.displayNameMax, field: "display_name_prefix")
        try check(request.providerID, max: Values.providerIDByteCountMax, field: "provider_id")
        try check(request.rawID, max: Values.rawIDByteCountMax, field: "raw_id")
        let phonePrefix = request.phoneNumberPrefix.bytes
        let digits = phonePrefix.dropFirst()
        let isNumber = phonePrefix.first == UInt8(ascii: "+") && digits.allSatisfy(\.isASCIIDigit)
        guard phonePrefix.isEmpty || isNumber && digits.count <= 15 else {
            throw .invalidQuery("phone_number_prefix", "must be + and up to 15 digits")
        }
        guard request.rawID.isEmpty || !request.providerID.isEmpty else {
            throw .invalidQuery("raw_id", "needs provider_id")
        }
        var filter = UserFilter()
        filter.emailPrefix = request.emailPrefix.bytes.lowercasedASCII
        filter.emailPart = request.emailPart.bytes.lowercasedASCII
        filter.displayNamePrefix = request.displayNamePrefix.bytes.lowercasedASCII
        filter.phoneNumberPrefix = phonePrefix
        filter.providerID = request.providerID.bytes
        if case .disabled(let isWanted) = request.disabledCondition { filter.isDisabled = isWanted }
        if case .emailVerified(let isWanted) = request.emailVerifiedCondition { filter.isEmailVerified = isWanted }
        filter.created = try range(
            request.createdFromMicros, request.createdBeforeMicros,
            fields: ("created_from_micros", "created_before_micros"))
        let (from, before) = (request.lastSignInFromMicros, request.lastSignInBeforeMicros)
        if from != 0 || before != 0 {
            filter.lastSignIn = try range(
                from, before, fields: ("last_sign_in_from_micros", "last_sign_in_before_micros"))
        }
        try readClaim(request, into: &filter, limits: limits)
        return filter
    }

    private static func readClaim(
        _ request: UsersQueryRequest, into filter: inout UserFilter, limits: Limits
    ) throws(Failure) {
        try check(request.claimName, max: limits.customClaimsMax, field: "claim_name")
        try check(request.claimValueJSON, max: limits.customClaimsMax, field: "claim_value_json")
        filter.claimName = request.claimName
        guard !request.claimValueJSON.isEmpty else { return }
        guard !request.claimName.isEmpty, let value = try? JSONValue(parsing: request.claimValueJSON.bytes, maxDepth: 5)
        else { throw .invalidQuery("claim_value_json", "must be a JSON value, with a claim_name") }
        filter.claimValue = value
    }

    private static func check(_ text: Text, max: Int, field: String) throws(Failure) {
        guard text.byteCount <= max else { throw .invalidQuery(field, "must have at most \(max) bytes") }
    }

    /// A range of times; a bound of 0 is no bound.
    private static func range(
        _ from: Int64, _ before: Int64, fields: (String, String)
    ) throws(Failure) -> Range<Int64> {
        guard from >= 0 else { throw .invalidQuery(fields.0, "must not be negative") }
        guard before == 0 || before >= from else {
            throw .invalidQuery(fields.1, "must not be before the other bound")
        }
        return from..<(before == 0 ? .max : before)
    }

    private static func index(_ request: UsersQueryRequest, _ filter: UserFilter) -> Index {
        if !request.rawID.isEmpty {
            return .identity(ProviderInfo(providerID: request.providerID, rawID: request.rawID))
        }
        switch request.order {
        case .uid: return .uid
        case .created: return .creation
        case .email: return .email
        case .phoneNumber: return .phoneNumber
        case .unspecified: break
        }
        if !filter.emailPrefix.isEmpty { return .email }
        if !filter.phoneNumberPrefix.isEmpty { return .phoneNumber }
        if filter.created != 0..<Int64.max { return .creation }
        return filter.emailPart.isEmpty ? .uid : .email
    }
}

extension Failure {
    fileprivate static func invalidQuery(_ field: String, _ problem: String) -> Failure {
        .invalid(.invalidQuery, field: field, problem)
    }
}

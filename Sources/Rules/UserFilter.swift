public import Base
import JSON
public import Messages

/// The conditions of a query for users, all of which a user must meet. Pure.
///
/// A user is checked in its encoded form, without making a `User` of it: most users that are read for a query are left
/// out.
public struct UserFilter: Sendable, Equatable {
    /// With A-Z lower-cased, as all conditions on emails and names.
    public var emailPrefix: [UInt8] = []
    public var emailPart: [UInt8] = []
    public var displayNamePrefix: [UInt8] = []
    public var phoneNumberPrefix: [UInt8] = []
    public var providerID: [UInt8] = []
    public var isDisabled: Bool?
    public var isEmailVerified: Bool?
    /// From the first bound on, before the second one.
    public var created = 0..<Int64.max
    public var lastSignIn: Range<Int64>?
    public var claimName = Text.empty
    /// Nil: any.
    var claimValue: JSONValue?

    public init() {}

    /// Whether a user meets the conditions. Throws for bytes that are not a `User`.
    public func matches(_ user: UnsafeRawBufferPointer) throws(DecodeError) -> Bool {
        var seen = Seen()
        var reader = FieldReader(user)
        while let field = try reader.next() {
            switch (field.number, field.value) {
            case (User.FieldNumber.email, .bytes(let email)): seen.email = email
            case (User.FieldNumber.emailVerified, .varint(let isSet)): seen.isEmailVerified = isSet != 0
            case (User.FieldNumber.displayName, .bytes(let name)): seen.displayName = name
            case (User.FieldNumber.phoneNumber, .bytes(let number)): seen.phoneNumber = number
            case (User.FieldNumber.disabled, .varint(let isSet)): seen.isDisabled = isSet != 0
            case (User.FieldNumber.customClaimsJSON, .bytes(let json)): seen.claims = json
            case (User.FieldNumber.createdAtMicros, .varint(let time)): seen.createdAt = Int64(bitPattern: time)
            case (User.FieldNumber.lastSignInAtMicros, .varint(let time)): seen.lastSignInAt = Int64(bitPattern: time)
            case (User.FieldNumber.providers, .bytes(let provider)):
                if !seen.hasProvider, !providerID.isEmpty { seen.hasProvider = names(provider) }
            default: break
            }
        }
        return matches(seen)
    }

    /// Whether an email with A-Z lower-cased meets the conditions on emails.
    public func matchesEmail(_ email: UnsafeRawBufferPointer) -> Bool {
        email.starts(with: emailPrefix, foldingCase: true) && email.contains(emailPart, foldingCase: true)
    }

    private struct Seen {
        var email = UnsafeRawBufferPointer(start: nil, count: 0)
        var displayName = UnsafeRawBufferPointer(start: nil, count: 0)
        var phoneNumber = UnsafeRawBufferPointer(start: nil, count: 0)
        var claims = UnsafeRawBufferPointer(start: nil, count: 0)
        var isEmailVerified = false
        var isDisabled = false
        var hasProvider = false
        var createdAt: Int64 = 0
        var lastSignInAt: Int64 = 0
    }

    private func matches(_ user: Seen) -> Bool {
        guard isDisabled.map({ $0 == user.isDisabled }) ?? true,
            isEmailVerified.map({ $0 == user.isEmailVerified }) ?? true,
            created.contains(user.createdAt), lastSignIn?.contains(user.lastSignInAt) ?? true,
            providerID.isEmpty || user.hasProvider
        else { return false }
        return matchesEmail(user.email) && user.displayName.starts(with: displayNamePrefix, foldingCase: true)
            && user.phoneNumber.starts(with: phoneNumberPrefix, foldingCase: false) && matchesClaims(user.claims)
    }

    private func names(_ provider: UnsafeRawBufferPointer) -> Bool {
        firstField(ProviderInfo.FieldNumber.providerID, in: provider)?.elementsEqual(providerID) ?? false
    }

    /// Claims were checked when they were set. Claims that cannot be read any more count as none.
    private func matchesClaims(_ json: UnsafeRawBufferPointer) -> Bool {
        guard !claimName.isEmpty else { return true }
        guard !json.isEmpty, let claim = (try? JSONValue(parsing: [UInt8](json)))?[claimName] else { return false }
        guard let claimValue else { return true }
        return claim == claimValue || claim.array?.contains(claimValue) ?? false
    }
}

extension UnsafeRawBufferPointer {
    /// `wanted` has its letters A-Z lower-cased, where case is folded.
    fileprivate func starts(with wanted: [UInt8], foldingCase: Bool) -> Bool {
        guard count >= wanted.count else { return false }
        for (index, byte) in wanted.enumerated() {
            guard byte == (foldingCase ? self[index].lowercasedASCII : self[index]) else { return false }
        }
        return true
    }

    fileprivate func contains(_ wanted: [UInt8], foldingCase: Bool) -> Bool {
        guard !wanted.isEmpty else { return true }
        guard count >= wanted.count else { return false }
        for start in 0...(count - wanted.count) {
            let rest = UnsafeRawBufferPointer(rebasing: self[start...])
            if rest.starts(with: wanted, foldingCase: foldingCase) { return true }
        }
        return false
    }
}

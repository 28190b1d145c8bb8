public import Base
public import Crypto

/// An attempt that may be a guess: its source and its account, as hashes that tell nothing without the project's key.
public struct Guess: Hashable, Sendable {
    public enum Kind: UInt8, Sendable {
        /// A password.
        case password = 1
        /// A question whose answer tells whether an email has an account.
        case probe = 2
    }

    public var kind: Kind
    /// The email, whether or not an account has it; 0 where a question about one email may be asked often.
    public var account: UInt64 = 0
    /// The device or the address; 0 when neither is known.
    public var source: UInt64 = 0
    /// Whether the source signed in to the account before.
    public var isKnown = false
    /// The end user's address; 0 when it is not known.
    public var address: UInt64 = 0
    public var tenant: UInt64
    public var caller: UInt64

    public init(
        kind: Kind, account: UInt64 = 0, source: UInt64 = 0, isKnown: Bool = false, address: UInt64 = 0, tenant: UInt64,
        caller: UInt64
    ) {
        self.kind = kind
        self.account = account
        self.source = source
        self.isKnown = isKnown && source != 0
        self.address = address
        self.tenant = tenant
        self.caller = caller
    }

    public var subject: PasswordThrottle.Subject {
        .init(account: account, source: source, isKnown: isKnown, tenant: tenant)
    }
}

/// The hashes that guesses are counted by.
public struct GuessKeys: Sendable {
    private let key: HMACKey

    public init(key: HMACKey) { self.key = key }

    public func account(_ email: Email, tenantID: Text) -> UInt64 {
        hash(1, tenantID.bytes + [0] + email.canonical.bytes)
    }

    /// The hash of an address, the same for all tenants, because one password may be tried on all of them.
    public func address(_ address: EndUserAddress) -> UInt64 { hash(2, address.network) }
    public func device(_ id: [UInt8]) -> UInt64 { hash(3, id) }
    public func tenant(_ tenantID: Text) -> UInt64 { hash(4, tenantID.bytes) }
    public func caller(_ id: Text) -> UInt64 { hash(5, id.bytes) }

    /// Never 0, which stands for "not known".
    private func hash(_ purpose: UInt8, _ bytes: [UInt8]) -> UInt64 {
        max(1, key.tag(of: [purpose] + bytes).prefix(8).bigEndianNumber)
    }
}

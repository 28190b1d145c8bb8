public import Base
public import Rules

/// Whose turn at the password workers a hash takes, and until when it may begin.
public struct PasswordTurn: Sendable {
    public let settings: TenantSettings
    /// Whom the hash is for, among those who share the tenant's turns (`Origin.source`).
    let source: Text
    let deadline: Instant

    var tenantID: Text { settings.tenantID }

    /// `address`: the end user's, nil if it is not known.
    public init(settings: TenantSettings, address: EndUserAddress?, origin: Origin, deadline: Instant) {
        self.settings = settings
        self.source = origin.source(address)
        self.deadline = deadline
    }
}

extension SignInAttempt {
    var passwordTurn: PasswordTurn {
        PasswordTurn(settings: settings, address: address, origin: request.origin, deadline: deadline)
    }
}

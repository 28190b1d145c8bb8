// The commands of each method of the protocol. A test compares this list with the protocol and with the command tree.

/// How a method is reached from the command line besides `postern rpc call`.
enum MethodCoverage: Sendable, Equatable {
    /// Full names of commands, the most usual first.
    case command([String])
    /// The reason why the method needs no command of its own.
    case noCommand(String)

    static func command(_ names: String...) -> MethodCoverage { .command(names) }

    var commands: [String] {
        if case .command(let names) = self { names } else { [] }
    }

    /// `method`: "postern.v1.Users/Get", or the same without the package.
    static func of(_ method: String) -> MethodCoverage? {
        let prefix = "postern.v1."
        return all[method.hasPrefix(prefix) ? String(method.dropFirst(prefix.count)) : method]
    }

    static let all: [String: MethodCoverage] = accounts.merging(admins) { first, _ in first }
        .merging(project) { first, _ in first }.merging(others) { first, _ in first }

    private static let application = "a step of an application's sign-in, with state that a library keeps: PosternAuth"

    private static let accounts: [String: MethodCoverage] = [
        "Accounts/SignUp": .command("account sign-up"),
        "Accounts/SignInWithPassword": .command("account sign-in"),
        "Accounts/SignInWithIdp": .command("account sign-in-idp"),
        "Accounts/CreateAuthUri": .command("account auth-uri"),
        "Accounts/Lookup": .command("account lookup"),
        "Accounts/Update": .command("account update"),
        "Accounts/Delete": .command("account delete"),
        "Accounts/Unlink": .command("account unlink"),
        "Accounts/SendOobCode": .command("account send-code"),
        "Accounts/CheckOobCode": .command("account check-code"),
        "Accounts/ApplyOobCode": .command("account apply-code"),
        "Accounts/ResetPassword": .command("account reset-password"),
        "Accounts/SignInWithCustomToken": .command("account sign-in-custom"),
        "Accounts/SignInWithEmailLink": .noCommand(application),
        "Accounts/Reauthenticate": .noCommand(application),
        "Accounts/SendVerificationCode": .noCommand(application),
        "Accounts/SignInWithPhoneNumber": .noCommand(application),
        "Accounts/StartMfaEnrollment": .noCommand(application),
        "Accounts/FinalizeMfaEnrollment": .noCommand(application),
        "Accounts/WithdrawMfaEnrollment": .noCommand(application),
        "Accounts/RenewRecoveryCodes": .noCommand(application),
        "Accounts/StartMfaSignIn": .noCommand(application),
        "Accounts/FinalizeMfaSignIn": .noCommand(application),
        "Sessions/SignOut": .command("session sign-out"),
        "Sessions/WatchAuthState": .command("session watch"),
        "Sessions/List": .noCommand("a user's own list; for admins: session list, by Users/ListSessions"),
        "Sessions/Revoke": .noCommand("a user's own sessions; for admins: session revoke, by Users/RevokeSession"),
        "Tokens/VerifyIdToken": .command("token verify"),
        "Tokens/Refresh": .command("token refresh"),
        "Tokens/CreateSessionCookie": .command("token create-cookie"),
        "Tokens/VerifySessionCookie": .command("token verify-cookie"),
        "Tokens/WatchRevocations": .command("revocations watch"),
        "Tokens/ListKeys": .noCommand("key sets for verifiers, also at /.well-known/jwks.json; for admins: key list"),
    ]

    private static let admins: [String: MethodCoverage] = [
        "Users/Create": .command("user create"),
        "Users/Get": .command("user get", "user mfa list"),
        "Users/GetByEmail": .command("user get"),
        "Users/GetByPhone": .command("user get"),
        "Users/GetByProvider": .command("user get"),
        "Users/BatchGet": .command("user batch-get"),
        "Users/Count": .command("user count"),
        "Users/Query": .command("user query"),
        "Users/List": .command("user list"),
        "Users/Update": .command("user update"),
        "Users/UpdateMany": .command("user patch"),
        "Users/SetCustomClaims": .command("user set-claims"),
        "Users/BatchDelete": .command("user batch-delete"),
        "Users/Delete": .command("user delete"),
        "Users/RevokeTokens": .command("user revoke-tokens"),
        "Users/ListSessions": .command("session list"),
        "Users/RevokeSession": .command("session revoke"),
        "Users/GenerateOobLink": .command("user oob-link"),
        "Users/Link": .command("user link"),
        "Users/ExplainLink": .command("user explain-link"),
        "Users/Unlink": .command("user unlink"),
        "Users/CreateCustomToken": .command("token mint"),
        "Users/AddSecondFactor": .command("user mfa add-phone"),
        "Users/RemoveSecondFactor": .command("user mfa remove"),
        "Users/VerifyHashSpec": .command("user verify-hash"),
        "Users/Export": .command("user export"),
        "Users/Import": .command("user import"),
        "Tenants/Create": .command("tenant create"),
        "Tenants/Get": .command("tenant get"),
        "Tenants/GetUsage": .command("tenant usage"),
        "Tenants/List": .command("tenant list"),
        "Tenants/Update": .command("tenant update"),
        "Tenants/UpdateMany": .command("tenant update"),
        "Tenants/CopySettings": .command("tenant copy-settings"),
        "Tenants/Delete": .command("tenant delete"),
        "Tenants/ListDenials": .command("denials list"),
        "Tenants/ListAllDenials": .command("denials list"),
        "Tenants/WatchDenials": .command("denials watch"),
        "Providers/Create": .command("provider create"),
        "Providers/Get": .command("provider get"),
        "Providers/List": .command("provider list"),
        "Providers/Update": .command("provider update"),
        "Providers/Delete": .command("provider delete"),
        "Providers/Rebind": .command("provider rebind"),
        "Providers/Test": .command("provider test"),
        "HookConfigs/Get": .command("hook-config get"),
        "HookConfigs/Update": .command("hook-config update"),
        "EmailConfigs/Get": .command("email-config get"),
        "EmailConfigs/Update": .command("email-config update", "email-config set-template"),
        "EmailConfigs/Test": .command("email-config test"),
        "EmailConfigs/PreviewTemplate": .command("email-config preview"),
        "SmsConfigs/Get": .command("sms-config get"),
        "SmsConfigs/Update": .command("sms-config update"),
        "Outbox/List": .command("outbox list"),
        "Outbox/Get": .command("outbox get"),
        "Outbox/Retry": .command("outbox retry"),
        "Outbox/Delete": .command("outbox delete"),
        "Audit/ListEvents": .command("audit list", "audit export"),
        "Audit/ListSettingsChanges": .command("tenant history"),
        "Audit/WatchEvents": .command("audit watch"),
        "Audit/SignCheckpoint": .command("audit export"),
        "Audit/GetKey": .command("audit key"),
    ]

    private static let project: [String: MethodCoverage] = [
        "Project/CreateApiKey": .command("apikey create"),
        "Project/ListApiKeys": .command("apikey list"),
        "Project/UpdateApiKey": .command("apikey update"),
        "Project/RotateApiKey": .command("apikey rotate"),
        "Project/TestPermissions": .command("can-i"),
        "Project/RevokeApiKey": .command("apikey revoke"),
        "Project/WhoAmI": .command("whoami"),
        "Project/CreateCertificateMapping": .command("certificate map"),
        "Project/ListCertificateMappings": .command("certificate list"),
        "Project/DeleteCertificateMapping": .command("certificate unmap"),
        "Project/CreateServiceAccount": .command("service-account create"),
        "Project/GetServiceAccount": .command("service-account get"),
        "Project/ListServiceAccounts": .command("service-account list"),
        "Project/UpdateServiceAccount": .command(
            "service-account update", "service-account disable", "service-account enable"),
        "Project/DeleteServiceAccount": .command("service-account delete"),
        "Project/CreateServiceAccountKey": .command("service-account key create"),
        "Project/UploadServiceAccountKey": .command("service-account key upload"),
        "Project/ListServiceAccountKeys": .command("service-account key list"),
        "Project/RevokeServiceAccountKey": .command("service-account key revoke"),
        "Project/ListSigningKeys": .command("key list"),
        "Project/RotateSigningKey": .command("key rotate"),
        "Project/RevokeSigningKey": .command("key revoke"),
        "Project/ServerInfo": .command("server info"),
        "Project/Stats": .command("server stats"),
        "Project/GetClusterStatus": .command("cluster status"),
        "Project/DigestStore": .command("cluster verify"),
        "Project/MakeSnapshot": .command("cluster snapshot"),
        "Project/Backup": .command("backup create"),
    ]

    private static let others: [String: MethodCoverage] = [
        "grpc.health.v1.Health/Check": .command("server health"),
        "grpc.health.v1.Health/Watch": .noCommand("for balancers, which wait for changes"),
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo": .noCommand(
            "for tools that do not know the protocol; this one has it: rpc describe"),
    ]
}

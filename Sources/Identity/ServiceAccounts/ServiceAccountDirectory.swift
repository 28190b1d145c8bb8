public import Base
import Crypto
public import Messages
public import Reactor
public import Rules
import Store

/// A change of a service account: each non-nil value is set.
public struct ServiceAccountChange: Sendable {
    public var displayName: Text?
    public var role: Role?
    public var scope: Scope?
    public var signsCustomTokens: Bool?
    public var trustsEndUserIP: Bool?
    public var isDisabled: Bool?
    public var quotas: CallerQuotasChange?

    public init() {}

    /// INVALID_DISPLAY_NAME, INVALID_ROLE, INVALID_SCOPE, INVALID_QUOTA.
    func apply(to account: inout ServiceAccount, limits: Limits) throws(Failure) {
        if let displayName {
            try Values.checkDisplayName(displayName, limits: limits)
            account.displayName = displayName
        }
        let grant = try Grant(role: role ?? account.role, scope: scope ?? account.scope, allowsNoRole: true)
        account.role = grant.role
        account.scope = grant.scope
        if let signsCustomTokens { account.customTokens = signsCustomTokens }
        if let trustsEndUserIP { account.trustedEndUserIP = trustsEndUserIP }
        if let isDisabled { account.disabled = isDisabled }
        if let quotas {
            try quotas.check()
            account.quotas = quotas.applied(to: account.quotas)
        }
    }
}

/// The service accounts of the project and their keys: makes, changes and ends them. `ServiceAccountSigners` finds out
/// who signed something.
public final class ServiceAccountDirectory: Sendable {
    let resources: Resources
    let pool: WorkerPool
    let projectID: Text
    let issuer: Text

    public init(resources: Resources, pool: WorkerPool, projectID: Text, issuer: Text) {
        self.resources = resources
        self.pool = pool
        self.projectID = projectID
        self.issuer = issuer
    }

    /// The name of an account in the tokens that it signs.
    func email(of id: Text) -> Text {
        Text(unchecked: id.bytes + [UInt8(ascii: "@")] + projectID.bytes + [UInt8](".postern.local".utf8))
    }

    /// INVALID_SERVICE_ACCOUNT_ID, INVALID_DISPLAY_NAME, INVALID_ROLE, INVALID_SCOPE, TENANT_NOT_FOUND,
    /// SERVICE_ACCOUNT_ID_EXISTS. An empty id is replaced by a random one.
    ///
    /// `maker`, here and below: the caller who makes the change.
    public func create(
        id wanted: Text, _ change: ServiceAccountChange, by maker: Caller?, validateOnly: Bool, origin: Origin
    ) async throws -> ServiceAccount {
        let id = wanted.isEmpty ? resources.random.alphanumeric(20, lowercase: true) : wanted
        guard Values.isPlainID(id) else {
            throw Failure.invalid(
                .invalidServiceAccountID, field: "service_account_id",
                "must be 4 to 64 characters of a-z, 0-9 and -")
        }
        let now = resources.clock.now()
        var account = ServiceAccount(serviceAccountID: id, email: email(of: id), createdAtMicros: now.microseconds)
        try change.apply(to: &account, limits: resources.limits)
        let made = account
        return try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                try transaction.reading.checkExists(made.scope)
                guard try !transaction.exists(Tables.serviceAccounts, TextKey(id)) else {
                    throw Failure(
                        .serviceAccountIDExists,
                        "There is or was a service account \"\(id)\"; an id is never used again, choose another.")
                }
                if !validateOnly {
                    try transaction.put(made, over: nil, .serviceAccountCreated, origin: origin, now: now)
                }
                return made
            }
        }
    }

    /// SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT and the refusals of `ServiceAccountChange`;
    /// TENANT_NOT_FOUND. The change holds from the next request and the next token on.
    public func update(
        id: Text, _ change: ServiceAccountChange, by maker: Caller?, validateOnly: Bool, origin: Origin
    ) async throws -> ServiceAccount {
        let now = resources.clock.now()
        let limits = resources.limits
        return try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let before = try transaction.reading.changeableServiceAccount(id)
                var account = before
                try change.apply(to: &account, limits: limits)
                if change.scope != nil { try transaction.reading.checkExists(account.scope) }
                if !validateOnly {
                    try transaction.put(account, over: before, .serviceAccountUpdated, origin: origin, now: now)
                }
                return account
            }
        }
    }

    /// Deletes an account and its keys, and leaves a tombstone. SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT.
    public func delete(id: Text, validateOnly: Bool, origin: Origin) async throws {
        let now = resources.clock.now()
        _ = try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let account = try transaction.reading.changeableServiceAccount(id)
                if validateOnly { return ProjectDeleteServiceAccountResponse() }
                try transaction.deleteWithKeys(account)
                try transaction.appendEvent(
                    .serviceAccountDeleted, tenantID: .empty, origin: origin, detail: id, now: now)
                return ProjectDeleteServiceAccountResponse()
            }
        }
    }
}

extension ReadTransaction {
    /// SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT.
    func changeableServiceAccount(_ id: Text) throws -> ServiceAccount {
        let account = try serviceAccount(id)
        if account.builtIn { throw Failure.builtInServiceAccount }
        return account
    }
}

extension WriteTransaction {
    /// `before`: the account as it was; nil for a new one.
    func put(
        _ account: ServiceAccount, over before: ServiceAccount?, _ event: EventKind, origin: Origin, now: Timestamp
    ) throws {
        try put(
            Tables.serviceAccounts, TextKey(account.serviceAccountID), StoredServiceAccount(serviceAccount: account))
        let detail = account.eventDetail(since: before ?? ServiceAccount())
        try appendEvent(event, tenantID: .empty, origin: origin, detail: detail, now: now)
    }

    /// Deletes an account and its keys, and leaves a tombstone, because the id is never used again.
    func deleteWithKeys(_ account: ServiceAccount) throws {
        let id = account.serviceAccountID
        try put(Tables.serviceAccounts, TextKey(id), StoredServiceAccount(serviceAccount: account, deleted: true))
        _ = try deleteAll(Tables.serviceAccountKeys, prefix: ServiceAccountKeyKey(id), limit: .max)
    }
}

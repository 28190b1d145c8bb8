public import Base
public import Messages
public import PosternClient

/// The administrator of a project: manages tenants, credentials and signing keys. `tenant(_:)` leads to the users.
///
/// Needs a credential with the role project-admin. Every method may be called from any task. Every call throws
/// `Failure`: the server's refusal, or the reason why the server could not be reached. docs/admin.md of the repository
/// tells what happens when an answer gets lost.
///
/// ```swift
/// let project = ProjectAdmin(channel: channel)
/// try await project.createTenant("acme", settings: TenantSettingsChange { $0.displayName = "Acme" })
/// let (apiKey, secretKey) = try await project.createApiKey(role: .app, scope: Scope(tenants: .tenantID("acme")))
/// print(apiKey.apiKeyID, secretKey)  // prints the secret as <secret>
/// ```
public struct ProjectAdmin: Sendable {
    let channel: Channel

    /// Creates an administrator that calls over `channel`.
    public init(channel: Channel) { self.channel = channel }

    /// Returns the administrator of a tenant; "" is the default pool. Makes no call: for a tenant that does not exist
    /// the first call throws TENANT_NOT_FOUND.
    public func tenant(_ tenantID: Text) -> TenantAdmin { TenantAdmin(channel: channel, tenantID: tenantID) }

    /// Returns the server's version, protocol and limits.
    public func serverInfo(options: CallOptions = .init()) async throws(Failure) -> ProjectServerInfoResponse {
        try await project.serverInfo(ProjectServerInfoRequest(), options: options)
    }

    /// Returns the server's counters since its start.
    public func stats(options: CallOptions = .init()) async throws(Failure) -> [StatsValue] {
        try await project.stats(ProjectStatsRequest(), options: options).values
    }

    /// Returns the position of the answering node in its cluster's journal.
    public func clusterStatus(
        options: CallOptions = .init()
    ) async throws(Failure) -> ProjectGetClusterStatusResponse {
        try await project.getClusterStatus(ProjectGetClusterStatusRequest(), options: options)
    }

    /// Returns a digest of each table of the node that answers. Throws DIGEST_IN_PROGRESS.
    public func digestStore(options: CallOptions = .init()) async throws(Failure) -> ProjectDigestStoreResponse {
        try await project.digestStore(ProjectDigestStoreRequest(), options: options)
    }

    /// Makes a snapshot of the cluster, from which the next node joins, and returns when it is complete. Throws
    /// NOT_IN_CLUSTER, SNAPSHOT_IN_PROGRESS and SNAPSHOT_FAILED.
    public func makeSnapshot(options: CallOptions = .init()) async throws(Failure) -> ProjectMakeSnapshotResponse {
        try await project.makeSnapshot(ProjectMakeSnapshotRequest(), options: options)
    }

    /// Takes a backup of the whole server, and passes its bytes to `write`, piece by piece. Returns their count.
    ///
    /// Throws BACKUP_IN_PROGRESS, the errors of `write`, and UNAVAILABLE if the backup was broken off: the written
    /// bytes are a backup only when this method returns. `postern backup restore` puts it back.
    public func writeBackup(
        options: CallOptions = .init(), to write: ([UInt8]) async throws -> Void
    ) async throws -> Int64 {
        try await project.backup(ProjectBackupRequest(), options: options).forEachPiece(write)
    }

    var project: ProjectClient { ProjectClient(channel: channel) }
    var tenants: TenantsClient { TenantsClient(channel: channel) }
}

// MARK: - Tenants

extension ProjectAdmin {
    /// Creates a tenant.
    ///
    /// `tenantID` is [a-z0-9-]{4,64}; the server makes one if it is empty. Settings that `settings` leaves out have
    /// those of `template`, or else their defaults: password sign-up on, everything else off. `synthetic` tenants are
    /// for load tests. Throws TENANT_ID_EXISTS, also for the id of a deleted tenant, INVALID_TENANT_ID and
    /// TEMPLATE_NOT_FOUND.
    @discardableResult
    public func createTenant(
        _ tenantID: Text = .empty, settings: TenantSettingsChange = .init(), template: Text = .empty,
        synthetic: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        var fields = settings.fields
        var mask = fields.mask
        // No update may change this field: it is set at creation only.
        fields.message.synthetic = synthetic
        if synthetic { mask.paths.append("synthetic") }
        let request = TenantsCreateRequest(
            tenantID: tenantID, tenant: fields.message, updateMask: mask, templateTenantID: template)
        return try await required(sendOnce(tenants.create, request, options).tenant)
    }

    /// Returns a tenant's settings. Throws TENANT_NOT_FOUND.
    public func getTenant(_ tenantID: Text, options: CallOptions = .init()) async throws(Failure) -> Tenant {
        try await tenant(tenantID).settings(options: options)
    }

    /// Lists the tenants in the order of their ids. `pageSize`: 1...1,000; 0 = 100.
    public func listTenants(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<Tenant> {
        Listing { [tenants] token throws(Failure) in
            let page = try await tenants.list(
                TenantsListRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.tenants, page.nextPageToken)
        }
    }

    /// Changes a tenant's settings. Throws TENANT_NOT_FOUND, and INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateTenant(
        _ tenantID: Text, _ change: TenantSettingsChange, options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        try await tenant(tenantID).updateSettings(change, options: options)
    }

    /// Deletes a tenant with all its users. The id can never be used again. Throws TENANT_NOT_FOUND.
    public func deleteTenant(_ tenantID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = TenantsDeleteRequest(tenantID: tenantID)
        _ = try await sendOnce(tenants.delete, request, options)
    }
}

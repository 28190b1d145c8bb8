public import Messages

extension SettingsChange {
    /// The differences between two states of a tenant's settings, among the settings at `paths`.
    public init(from old: Messages.Tenant, to new: Messages.Tenant, paths: [Messages.Tenant.Path]) {
        self.init(revision: new.revision, before: Messages.Tenant(), after: Messages.Tenant())
        for path in paths where !old.has(path, as: new) || new.setsFirstList(at: path, over: old) {
            note(path, old, new)
        }
    }

    /// The first settings of a tenant, at `paths`.
    public init(of new: Messages.Tenant, paths: [Messages.Tenant.Path]) {
        self.init(revision: new.revision, after: Messages.Tenant())
        for path in paths { note(path, nil, new) }
    }

    private mutating func note(_ path: Messages.Tenant.Path, _ old: Messages.Tenant?, _ new: Messages.Tenant) {
        paths.append(path.name)
        if let old { before?.copy(path, from: old.withoutCodes) }
        after?.copy(path, from: new.withoutCodes)
    }
}

extension Messages.Tenant {
    /// Whether the setting at `path` is the same in `other`.
    func has(_ path: Path, as other: Messages.Tenant) -> Bool {
        var (mine, others) = (Messages.Tenant.withMessages, Messages.Tenant.withMessages)
        mine.copy(path, from: whole)
        others.copy(path, from: other.whole)
        return mine == others
    }

    /// Whether the change of `old` sets the first list of domains of a tenant from before there were lists. An empty
    /// list is one, too: no other domain is allowed from then on.
    fileprivate func setsFirstList(at path: Path, over old: Messages.Tenant) -> Bool {
        path == .allowedContinueDomains && continueURLRule != old.continueURLRule
    }

    /// The settings with an empty message in the place of each missing one, which means the same.
    private var whole: Messages.Tenant {
        var tenant = self
        tenant.passwordPolicy = passwordPolicy ?? PasswordPolicy()
        tenant.guidance = guidance ?? Guidance()
        tenant.quotas = quotas ?? TenantQuotas()
        tenant.client = ClientConfig(permissions: client?.permissions ?? ClientPermissions())
        return tenant
    }

    private static let withMessages = Messages.Tenant().whole

    /// The settings for the event log, which does not tell the codes by which somebody can sign in as a test user.
    fileprivate var withoutCodes: Messages.Tenant {
        var tenant = self
        tenant.testPhoneNumbers = testPhoneNumbers.map { TestPhoneNumber(phoneNumber: $0.phoneNumber) }
        return tenant
    }
}

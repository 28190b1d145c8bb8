public import Base
public import Messages

/// A credential to whose quotas a change is charged: the caller itself, or the owner of its quota. Immutable.
public struct QuotaHolder: Sendable, Equatable {
    /// As `Caller.id`.
    public let id: Text
    public let role: Role
    /// The quotas that a project-admin set; 0 = the server's defaults for the role.
    public let quotas: CallerQuotas

    public init(id: Text, role: Role, quotas: CallerQuotas) {
        self.id = id
        self.role = role
        self.quotas = quotas
    }
}

extension Caller {
    /// The caller with its own quotas.
    public var quotaHolder: QuotaHolder { QuotaHolder(id: id, role: role, quotas: quotas) }

    /// The credentials that have to allow each change of the caller: the caller, and the owner of its quota.
    public var quotaHolders: [QuotaHolder] { quotaOwner.map { [quotaHolder, $0] } ?? [quotaHolder] }

    /// The owner of the quota of each key that this caller makes, or whose new secret it gets; nil for a caller without
    /// quotas. A chain of makers ends at the first, so that all their keys have one quota together.
    public var quotaOwnerOfItsKeys: QuotaHolder? {
        if has(.projectAdmin) { return nil }
        return quotaOwner ?? (quotas == CallerQuotas() ? nil : quotaHolder)
    }
}

public import Base
public import Messages

/// The quotas in force: the server's defaults, and the values that a project-admin set for a tenant or a credential.
public struct QuotaLimits: Sendable {
    /// How many seconds' worth of changes may come at once.
    public static let burstSeconds: Int64 = 4
    /// The greatest value a project-admin can set: sums of it do not overflow.
    static let settableMax: Int64 = 1 << 50

    public let limits: Limits
    /// By default one tenant gets at most an eighth of the store, whatever the map's size is.
    public let mapByteCount: Int

    public init(limits: Limits, mapByteCount: Int) {
        self.limits = limits
        self.mapByteCount = mapByteCount
    }

    /// `withReserve`: an eighth more, and not less than `Limits.tenantReserveMin`, for changes that end something and
    /// leave events and revocations.
    public func storedBytes(_ settings: TenantSettings, withReserve: Bool = false) -> Int64 {
        let standard = min(limits.tenantStoredBytesMax, mapByteCount / 8)
        let limit = Self.value(settings.quotas.storedBytes, Int64(standard))
        return withReserve ? limit + max(limit / 8, Int64(limits.tenantReserveMin)) : limit
    }

    public func mutationsPerSecond(_ settings: TenantSettings) -> Int64 {
        Self.value(settings.quotas.mutationsPerSecond, Int64(limits.mutationsPerTenantPerSecond))
    }

    public func anonymousSignUpsPerHour(_ settings: TenantSettings) -> Int64 {
        Self.value(settings.quotas.anonymousSignUpsPerHour, Int64(limits.anonymousSignUpsPerTenantAndHour))
    }

    public func smsPerHour(_ settings: TenantSettings) -> Int64 {
        Self.value(settings.quotas.smsPerHour, Int64(limits.smsPerTenantAndHour))
    }

    public func smsPerHour(_ holder: QuotaHolder) -> Int64 {
        Self.value(holder.quotas.smsPerHour, Int64(limits.smsPerCallerAndHour))
    }

    public func mutationsPerSecond(_ holder: QuotaHolder) -> Int64 {
        let standard = holder.isAdmin ? limits.mutationsPerAdminPerSecond : limits.mutationsPerCallerPerSecond
        return Self.value(holder.quotas.mutationsPerSecond, Int64(standard))
    }

    public func writtenBytesPerHour(_ holder: QuotaHolder) -> Int64 {
        let standard = holder.isAdmin ? limits.writtenBytesPerAdminAndHour : limits.writtenBytesPerCallerAndHour
        return Self.value(holder.quotas.writtenBytesPerHour, Int64(standard))
    }

    /// Whether the own quotas let `caller` do more than `other` in any way. Where neither has a quota that a
    /// project-admin set, both have the defaults of their roles, which are not compared.
    ///
    /// | quota of `caller` | of `other` | more |
    /// |---|---|---|
    /// | 5 | 3 | yes |
    /// | not set: 500 by default | 3 | yes |
    /// | 5 | not set: 2,000 by default | no |
    /// | not set | not set | no |
    public func allow(_ caller: Caller, moreThan other: Caller) -> Bool {
        func isMore(_ set: (CallerQuotas) -> Int64, _ limit: (QuotaHolder) -> Int64) -> Bool {
            (set(caller.quotas) != 0 || set(other.quotas) != 0)
                && limit(caller.quotaHolder) > limit(other.quotaHolder)
        }
        return isMore({ $0.mutationsPerSecond }, { mutationsPerSecond($0) })
            || isMore({ $0.writtenBytesPerHour }, { writtenBytesPerHour($0) })
            || isMore({ $0.smsPerHour }, { smsPerHour($0) })
    }

    private static func value(_ set: Int64, _ standard: Int64) -> Int64 { max(1, set > 0 ? set : standard) }
}

extension QuotaHolder {
    fileprivate var isAdmin: Bool { role.rawValue >= Role.tenantAdmin.rawValue }
}

extension TenantQuotas {
    /// INVALID_QUOTA.
    public func check() throws(Failure) {
        try checkQuotas([storedBytes, mutationsPerSecond, anonymousSignUpsPerHour, smsPerHour])
    }
}

extension CallerQuotas {
    /// INVALID_QUOTA.
    public func check() throws(Failure) {
        try checkQuotas([mutationsPerSecond, writtenBytesPerHour, smsPerHour])
    }
}

private func checkQuotas(_ values: [Int64]) throws(Failure) {
    guard values.allSatisfy((0...QuotaLimits.settableMax).contains) else {
        throw .invalid(.invalidQuota, field: "quotas", "must be 0 (the default) to 2^50")
    }
}

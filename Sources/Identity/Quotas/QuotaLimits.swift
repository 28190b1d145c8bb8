import Base
import Messages

/// The quotas that bind: the server's defaults, and what a project-admin set for a tenant or a credential.
struct QuotaLimits: Sendable {
    /// How many seconds' worth of changes may come at once.
    static let burstSeconds: Int64 = 4
    /// The greatest value a project-admin can set: sums of it do not overflow.
    static let settableMax: Int64 = 1 << 50

    let limits: Limits
    /// One tenant never gets more of the store than an eighth by default, whatever the map's size is.
    let mapByteCount: Int

    func storedBytes(_ settings: TenantSettings) -> Int64 {
        let standard = min(limits.tenantStoredBytesMax, mapByteCount / 8)
        return Self.value(settings.quotas.storedBytes, Int64(standard))
    }

    func mutationsPerSecond(_ settings: TenantSettings) -> Int64 {
        Self.value(settings.quotas.mutationsPerSecond, Int64(limits.mutationsPerTenantPerSecond))
    }

    func anonymousSignUpsPerHour(_ settings: TenantSettings) -> Int64 {
        Self.value(settings.quotas.anonymousSignUpsPerHour, Int64(limits.anonymousSignUpsPerTenantAndHour))
    }

    func mutationsPerSecond(_ caller: Caller) -> Int64 {
        let isAdmin = caller.has(.tenantAdmin)
        let standard = isAdmin ? limits.mutationsPerAdminPerSecond : limits.mutationsPerCallerPerSecond
        return Self.value(caller.quotas.mutationsPerSecond, Int64(standard))
    }

    func writtenBytesPerHour(_ caller: Caller) -> Int64 {
        let isAdmin = caller.has(.tenantAdmin)
        let standard = isAdmin ? limits.writtenBytesPerAdminAndHour : limits.writtenBytesPerCallerAndHour
        return Self.value(caller.quotas.writtenBytesPerHour, Int64(standard))
    }

    private static func value(_ set: Int64, _ standard: Int64) -> Int64 { max(1, set > 0 ? set : standard) }
}

extension TenantQuotas {
    /// INVALID_QUOTA.
    func check() throws(Failure) { try checkQuotas([storedBytes, mutationsPerSecond, anonymousSignUpsPerHour]) }
}

extension CallerQuotas {
    /// INVALID_QUOTA.
    func check() throws(Failure) { try checkQuotas([mutationsPerSecond, writtenBytesPerHour]) }
}

private func checkQuotas(_ values: [Int64]) throws(Failure) {
    guard values.allSatisfy((0...QuotaLimits.settableMax).contains) else {
        throw .invalid(.invalidQuota, field: "quotas", "must be 0 (the default) to 2^50")
    }
}

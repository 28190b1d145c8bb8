public import Base
import Messages

/// A quota of one tenant or one credential. The names are those of QUOTA_EXCEEDED and of Tenants.GetUsage.
public enum Quota: String, CaseIterable, Sendable {
    case tenantStoredBytes = "tenant_stored_bytes"
    case tenantMutations = "tenant_mutations"
    case tenantAnonymousSignUps = "tenant_anonymous_sign_ups"
    case addressAnonymousSignUps = "address_anonymous_sign_ups"
    case callerMutations = "caller_mutations"
    case callerWrittenBytes = "caller_written_bytes"
    case tenantSMS = "tenant_sms"
    case regionSMS = "region_sms"
    case callerSMS = "caller_sms"

    /// The quota's index in arrays of counts.
    public var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    fileprivate var meaning: String {
        switch self {
        case .tenantStoredBytes:
            "The tenant's rows, the events of its log among them, take as many bytes as they may; have a project-admin "
                + "raise the quota, or delete old events by event_retention_seconds."
        case .tenantMutations: "The tenant's end users make more changes a second than they may."
        case .tenantAnonymousSignUps: "The tenant has as many anonymous sign-ups in this hour as it may."
        case .addressAnonymousSignUps: "There are as many anonymous sign-ups from this address in this hour as may be."
        case .callerMutations: "This credential makes more changes a second than it may."
        case .callerWrittenBytes: "This credential adds more bytes in an hour than it may."
        case .tenantSMS: "The tenant has as many codes sent by SMS in this hour as it may."
        case .regionSMS:
            "As many codes as may be were sent to numbers of this region in this hour; name it in allowed_sms_regions."
        case .callerSMS: "This credential has as many codes sent by SMS in this hour as it may."
        }
    }
}

extension Failure {
    /// `retryAfter`: nil where waiting does not help.
    public static func quotaExceeded(_ quota: Quota, limit: Int64, used: Int64, retryAfter: Duration?) -> Failure {
        Failure(
            .quotaExceeded, quota.meaning,
            metadata: [
                Entry("quota", quota.rawValue), Entry("limit", "\(limit)"), Entry("used", "\(used)"),
                .requiredRole(.projectAdmin),
            ], retryAfter: retryAfter)
    }
}

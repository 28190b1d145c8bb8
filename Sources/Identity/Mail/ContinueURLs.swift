public import Base
import Messages
public import Rules
import Synchronization

/// Checks where continue URLs may lead, counts the results and logs a warning.
public final class ContinueURLs: Sendable {
    /// URLs that were refused with UNAUTHORIZED_DOMAIN.
    public let refused = Counter()
    /// URLs that were accepted without a list, for a tenant that was made before there were lists.
    public let unlisted = Counter()
    private let warned = Mutex<Set<Text>>([])
    private static let warnedMax = 1_000
    private let log: Log
    private let oobDelivery: OobDelivery

    init(log: Log, oobDelivery: OobDelivery) {
        self.log = log
        self.oobDelivery = oobDelivery
    }

    /// Refuses a `continue_url` that the tenant does not list. The recipient of a mail that the tenant sent trusts the
    /// URL in it. UNAUTHORIZED_DOMAIN. Empty is fine; the URL's form is checked before.
    public func check(
        _ url: Text, field: String = "continue_url", settings: TenantSettings
    ) throws {
        guard !url.isEmpty else { return }
        guard let domains = settings.continueDomains else {
            unlisted.add()
            if isFirst(settings.tenantID) {
                log.warning(
                    "a tenant takes any continue_url; set its allowed_continue_domains",
                    ["tenant": .text(settings.tenantID.string)])
            }
            return
        }
        guard !domains.allow(url, actionPage: try oobDelivery.actionPage(tenantID: settings.tenantID)) else { return }
        refused.add()
        throw Failure.invalid(
            .unauthorizedDomain, field: field,
            "leads to a host that this tenant does not list in allowed_continue_domains")
    }

    /// Whether there was no warning about this tenant yet. True once for a tenant, and for a thousand tenants at most.
    private func isFirst(_ tenantID: Text) -> Bool {
        warned.withLock { $0.count < Self.warnedMax && $0.insert(tenantID).inserted }
    }
}

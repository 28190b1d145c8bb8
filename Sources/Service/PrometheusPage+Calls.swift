import Base
import Identity
import Messages
import Store
import Wire

extension PrometheusPage {
    /// The outcomes and durations of calls. Durations by method have few buckets, because there are a hundred methods;
    /// durations by kind have all buckets.
    mutating func calls(of router: Router) {
        let methods = router.registry.all
        family("rpc_server_call_duration_seconds", "histogram", "How long unary calls took, by method.")
        for method in methods where method.kind == .unary {
            let snapshot = method.metrics.duration
            guard snapshot.cumulativeCounts.last ?? 0 > 0 else { continue }
            histogram(
                "rpc_server_call_duration_seconds", #"rpc_method="\#(method.descriptor.fullName)""#, snapshot,
                bounds: Self.methodBounds)
        }
        family("postern_call_duration_seconds", "histogram", "How long unary calls took, by how they are run.")
        for kind in CallKind.allCases {
            var total = DurationHistogram.Snapshot()
            for method in methods where CallKind(method.body) == kind { total.add(method.metrics.duration) }
            histogram("postern_call_duration_seconds", #"kind="\#(kind.rawValue)""#, total)
        }
        family("rpc_server_calls_total", "counter", "Calls by method, status and reason.")
        for method in methods where method.metrics.count(.ok) > 0 {
            value(
                "rpc_server_calls_total", #"rpc_method="\#(method.descriptor.fullName)",rpc_status_code="OK""#,
                Double(method.metrics.count(.ok)))
        }
        for (kind, count) in router.failures.all {
            value(
                "rpc_server_calls_total",
                #"rpc_method="\#(kind.method)",rpc_status_code="\#(kind.status.name)",reason="\#(kind.reason)""#,
                Double(count))
        }
        family(
            "postern_calls_failed_total", "counter",
            "Calls that failed by the fault of this server, its disk or its cluster; from 0 on.")
        for (status, count) in router.failures.ownFaults {
            value("postern_calls_failed_total", #"rpc_status_code="\#(status.name)""#, Double(count.value))
        }
        family("postern_tenant_calls_total", "counter", "Calls admitted for the tenants with the most of them.")
        for (tenantID, count) in router.service.tenantCalls.most {
            value("postern_tenant_calls_total", #"tenant="\#(tenantID)""#, Double(count))
        }
    }

    /// In microseconds.
    private static let methodBounds: [Int64] = [100_000]

    mutating func secondFactors(_ counts: SecondFactorCounts) {
        single(
            "postern_second_factors_asked_total", "counter", "Sign-ins that were told to show or enroll a factor.",
            Double(counts.asked.value))
        family("postern_second_factors_shown_total", "counter", "Factors shown for a sign-in, by what became of it.")
        for factor in SecondFactorCounts.Factor.allCases {
            let outcomes = counts.outcomes(of: factor)
            let all = [("right", outcomes.right), ("wrong", outcomes.wrong), ("refused", outcomes.refused)]
            for (name, count) in all {
                value(
                    "postern_second_factors_shown_total", #"factor="\#(factor.rawValue)",outcome="\#(name)""#,
                    Double(count.value))
            }
        }
    }

    mutating func providers(_ counts: ProviderRequestCounts) {
        family("postern_provider_requests_total", "counter", "Requests to identity providers, by what became of them.")
        let all = [("answered", counts.answered), ("refused", counts.refused), ("failed", counts.failed)]
        for (name, count) in all {
            value("postern_provider_requests_total", #"outcome="\#(name)""#, Double(count))
        }
        family(
            "postern_provider_request_duration_seconds", "histogram", "How long requests to identity providers took.")
        histogram(
            "postern_provider_request_duration_seconds", "", counts.duration,
            bounds: [50_000, 200_000, 1_000_000, 5_000_000])
    }

    mutating func hooks(_ failures: HookFailures) {
        family("postern_hook_failures_total", "counter", "Hooks of all tenants that failed, by the cause.")
        for (cause, count) in failures.counts {
            value("postern_hook_failures_total", #"cause="\#(cause.rawValue)""#, Double(count))
        }
    }

    mutating func deliveries(_ counts: DeliveryCounts) {
        family(
            "postern_mail_attempts_total", "counter", "Attempts to deliver mails and SMS of the outbox, by the outcome."
        )
        for kind in DeliveryCounts.Kind.allCases {
            let outcomes = counts.outcomes(of: kind)
            let all = [("sent", outcomes.sent), ("failed", outcomes.failed), ("refused", outcomes.refused)]
            for (name, count) in all {
                value(
                    "postern_mail_attempts_total", #"kind="\#(kind.rawValue)",outcome="\#(name)""#,
                    Double(count.value))
            }
        }
        single(
            "postern_mail_given_up_total", "counter", "Mails and SMS that were given up, for whatever reason.",
            Double(counts.givenUp.value))
    }

    mutating func outbox(_ census: OutboxCensus) {
        single("postern_outbox_pending", "gauge", "Mails and SMS to be delivered.", Double(census.pendingCount))
        single(
            "postern_outbox_dead", "gauge", "Mails and SMS that were given up and are kept.", Double(census.deadCount))
        single(
            "postern_outbox_overdue_seconds", "gauge", "How long the most overdue mail or SMS has been due.",
            census.overdue / .seconds(1))
        single(
            "postern_outbox_uncounted", "gauge",
            "1 when a figure of the outbox may be too low, because there are more messages than are counted.",
            census.isComplete ? 0 : 1)
    }

    /// The numbers of rows that operators ask for.
    mutating func rows(_ store: Store) {
        let counts = try? store.read { transaction in
            (try transaction.count(Tables.users), try transaction.count(Tables.sessions))
        }
        guard let (users, sessions) = counts else { return }
        single("postern_users", "gauge", "Users of all tenants.", Double(users))
        single(
            "postern_sessions", "gauge",
            "Sessions of all tenants; ended ones for as long as something may ask for them.", Double(sessions))
    }
}

/// How unary calls are run.
private enum CallKind: String, CaseIterable {
    case read, page, change

    init?(_ body: MethodBody) {
        switch body {
        case .fast: self = .read
        case .waiting(.page): self = .page
        case .waiting(.change): self = .change
        case .waiting(.stream): return nil
        }
    }
}

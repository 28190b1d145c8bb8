import Base
import Identity
import Messages
import Reactor
import Store
import TestSupport
import Testing

@testable import Service

/// How large /metrics becomes, and which calls are counted apart.
@Suite struct MetricsSizeTests {
    private static func body(_ server: TestServer) -> String {
        String(decoding: server.instance.prometheusText(), as: UTF8.self)
    }

    private static func failure(_ reason: Reason) -> Failure { Failure(reason, "") }

    @Test func `A scrape is below 128 kB with everything in use`() async throws {
        try await withServer { server in
            let router = server.instance.router
            let loopCount = server.instance.loops.loops.count
            for method in router.registry.all {
                for step in 0..<1_000 {
                    method.metrics.record(
                        .ok, nanoseconds: 1_234_567 * Int64(step), on: server.instance.loops.loops[step % loopCount])
                }
                // The counters as many calls would leave them.
                for reason in Reason.allCases {
                    router.failures.count(Self.failure(reason), of: method.descriptor.fullName)
                }
            }
            for number in 0..<5_000 {
                let name = Text("tenant-\(number)-\(String(repeating: "x", count: 100))".prefix(63).description)
                for _ in 0..<3 { _ = router.service.tenantCalls.count(name) }
            }
            let body = Self.body(server)
            // Counts have up to ten digits more on a server that runs for long, and a cluster's node has more metrics.
            #expect(body.utf8.count <= 100_000, "\(body.utf8.count)")
            #expect(body.utf8.count > 50_000)
            let samples = body.split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(Set(samples.compactMap { $0.split(separator: " ").first }).count == samples.count)
            for sample in samples { #expect(Double(sample.split(separator: " ").last ?? "") != nil, "\(sample)") }
        }
    }

    @Test func `The counts of a method are the sums of what each loop counted`() {
        let metrics = MethodMetrics()
        let loops = EventLoopGroup(count: 6).loops
        for (index, loop) in loops.enumerated() {
            for _ in 0...index { metrics.record(.ok, nanoseconds: 20_000, on: loop) }
            metrics.record(.unauthenticated, nanoseconds: 1_000_000_000_000, on: loop)
        }
        for code in StatusCode.allCases where code != .ok && code != .unauthenticated {
            metrics.record(code, nanoseconds: 0, on: loops[5])
            #expect(metrics.count(code) == 1)
        }
        #expect(metrics.count(.ok) == 21)
        #expect(metrics.count(.unauthenticated) == 6)
        #expect(metrics.duration.cumulativeCounts[0...1] == [15, 36])
        #expect(metrics.duration.cumulativeCounts.last == 42)
        #expect(abs(metrics.duration.sumSeconds - 6_000.000_42) < 1e-6)
    }

    @Test func `Failures are counted apart by method and reason as far as there is room`() {
        var limits = Limits()
        limits.failuresCountedApartMax = 2
        let failures = CallFailures(limits: limits)
        failures.count(Self.failure(.userNotFound), of: "a")
        failures.count(Self.failure(.invalidEmail), of: "a")
        failures.count(Self.failure(.invalidEmail), of: "b")
        failures.count(Self.failure(.userNotFound), of: "a")
        failures.count(Self.failure(.weakPassword), of: "c")
        let all = failures.all
        #expect(all.map(\.kind.method) == ["_OTHER", "a", "a"])
        #expect(all.map(\.kind.reason) == ["_OTHER", "INVALID_EMAIL", "USER_NOT_FOUND"])
        #expect(all.map(\.count) == [2, 1, 2])
        #expect(all[0].kind.status == .invalidArgument)
        // A reason that does not exist: from a peer, or made up.
        let unknown = CallFailures(limits: Limits())
        unknown.count(Failure(received: .internal, reason: "MADE_UP", ""), of: "a")
        #expect(unknown.all.map(\.kind.reason) == ["_OTHER"])
    }

    @Test func `What a tenant's own server or a stranger causes is told by its reason and is no fault of this server`()
    {
        var limits = Limits()
        limits.failuresCountedApartMax = 1
        let failures = CallFailures(limits: limits)
        let faults = { failures.ownFaults.map { "\($0.status.name) \($0.count.value)" } }
        #expect(faults() == ["INTERNAL 0", "UNKNOWN 0", "DATA_LOSS 0", "UNAVAILABLE 0"])
        failures.count(Self.failure(.userNotFound), of: "a")
        let reasons: [Reason] = [
            .idpUnavailable, .hookFailed, .credentialMissing, .shuttingDown, .storeUnavailable, .corruptRecord,
        ]
        for reason in reasons {
            failures.count(Self.failure(reason), of: "b")
        }
        failures.count(Self.failure(.hookFailed), of: "c")
        #expect(faults() == ["INTERNAL 0", "UNKNOWN 0", "DATA_LOSS 1", "UNAVAILABLE 1"])
        let others = failures.all.filter { $0.kind.method == "_OTHER" }
        #expect(
            others.map { "\($0.kind.reason) \($0.count)" } == [
                "CREDENTIAL_MISSING 1", "HOOK_FAILED 2", "IDP_UNAVAILABLE 1", "SHUTTING_DOWN 1", "_OTHER 1",
                "_OTHER 1",
            ])
    }

    @Test func `A call is no fault of this server where strangers ask its cluster too much`() {
        let failures = CallFailures(limits: Limits())
        let unavailable = { failures.ownFaults.first { $0.status == .unavailable }?.count.value }
        failures.count(Failure.nodeBehind.resting(on: .strangers), of: "a")
        #expect(unavailable() == 0)
        // The engine does not answer.
        failures.count(Failure.nodeBehind, of: "a")
        #expect(unavailable() == 1)
        #expect(failures.all.map { "\($0.kind.reason) \($0.count)" } == ["NODE_BEHIND 2"])
    }

    @Test func `Calls are counted by method, status, reason and tenant`() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"),
                returning: TenantsCreateResponse.self)
            for _ in 0..<3 {
                _ = try? client.call(
                    "postern.v1.Users/Get", UsersGetRequest(tenantID: "acme", uid: "nobody"),
                    returning: UsersGetResponse.self)
            }
            _ = try? client.call(
                "postern.v1.Users/Get", UsersGetRequest(tenantID: "made-up", uid: "nobody"),
                returning: UsersGetResponse.self)
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            let body = Self.body(server)
            let get = #"rpc_server_calls_total{rpc_method="postern.v1.Users/Get",rpc_status_code="NOT_FOUND","#
            #expect(body.contains(get + "reason=\"USER_NOT_FOUND\"} 3\n"))
            #expect(body.contains(get + "reason=\"TENANT_NOT_FOUND\"} 1\n"))
            #expect(body.contains(#"{rpc_method="postern.v1.Users/List",rpc_status_code="OK"} 1"#))
            #expect(body.contains("postern_calls_failed_total{rpc_status_code=\"INTERNAL\"} 0\n"))
            // A node of a cluster asks again, at the journal's end, before it refuses a call.
            let admissions = TestEngine.address == nil ? 3 : 6
            #expect(body.contains("postern_tenant_calls_total{tenant=\"acme\"} \(admissions)\n"))
            #expect(body.contains("postern_tenant_calls_total{tenant=\"\"} 1\n"))
            #expect(!body.contains("made-up"))
            #expect(body.contains("postern_call_duration_seconds_count{kind=\"read\"} 4\n"))
            #expect(body.contains("postern_call_duration_seconds_count{kind=\"page\"} 1\n"))
            #expect(body.contains("postern_call_duration_seconds_count{kind=\"change\"} 1\n"))
            #expect(body.contains("postern_users 0\n"))
        }
    }

    /// Puts a message there, with its row among those that are due if it is pending.
    private static func put(
        _ id: Text, _ state: OutboxState, dueAt: Timestamp? = nil, tenantID: Text = .empty, byteCount: Int = 0,
        _ server: TestServer
    ) async throws {
        var message = OutboxMessage(messageID: id, state: state)
        message.nextAttemptAtMicros = dueAt?.microseconds ?? 0
        let stored = StoredOutboxMessage(
            message: message, sealedContents: [UInt8](repeating: 1, count: byteCount))
        try await server.project.store.write { transaction in
            try transaction.put(Tables.outbox, TenantTextKey(tenantID, id), stored)
            if let dueAt { try transaction.put(Tables.outboxDue, OutboxDueKey(dueAt, tenantID, id), []) }
        }
    }

    private static func census(
        pending: Int = 0, dead: Int, overdue: Duration = .zero, isComplete: Bool = true
    ) -> OutboxCensus {
        var census = OutboxCensus()
        (census.pendingCount, census.deadCount) = (pending, dead)
        (census.overdue, census.isComplete) = (overdue, isComplete)
        return census
    }

    @Test func `Pending and dead messages are counted, to the limit and not past it`() async throws {
        try await withServer(configure: { $0.limits.outboxCountedMax = 5 }) { server in
            await server.project.mailer.stop()
            let now = server.project.clock.now()
            try await Self.put("a", .pending, dueAt: now - .seconds(90), server)
            try await Self.put("b", .pending, dueAt: now + .seconds(90), server)
            try await Self.put("c", .dead, server)
            try await Self.put("d", .sent, server)
            try await Self.put("e", .held, server)
            let gauges = OutboxGauges()
            let start = Instant.now
            let expected = Self.census(pending: 2, dead: 1, overdue: .seconds(90))
            #expect(gauges.census(of: server.project.outbox, now: start) == expected)
            try await Self.put("f", .dead, server)
            // The outbox is not counted again at once.
            #expect(gauges.census(of: server.project.outbox, now: start) == expected)
            let past = Self.census(pending: 2, dead: 1, overdue: .seconds(90), isComplete: false)
            #expect(gauges.census(of: server.project.outbox, now: start.advanced(by: .minutes(1))) == past)
        }
    }

    @Test func `One count reads so many bytes of messages, and the next goes on behind them`() async throws {
        try await withServer(configure: { $0.limits.outboxCountedBytesMax = 1_000 }) { server in
            await server.project.mailer.stop()
            for id in ["a", "b", "c", "d", "e"] as [Text] { try await Self.put(id, .dead, byteCount: 400, server) }
            let outbox = server.project.outbox
            var pass = OutboxPass()
            func next() throws -> OutboxCensus { try outbox.census(&pass) }
            // Each reads three messages, with which it is above the limit.
            #expect(try next() == Self.census(dead: 3, isComplete: false))
            #expect(try next() == Self.census(dead: 5))
            // What was counted to the end stands until it is counted to the end again.
            for id in ["f", "g"] as [Text] { try await Self.put(id, .dead, byteCount: 400, server) }
            #expect(try next() == Self.census(dead: 5))
            #expect(try next() == Self.census(dead: 5))
            #expect(try next() == Self.census(dead: 7))
        }
    }

    @Test func `The most overdue message is looked for among so many tenants`() async throws {
        try await withServer(configure: { $0.limits.outboxTenantsMax = 2 }) { server in
            await server.project.mailer.stop()
            let (now, outbox) = (server.project.clock.now(), server.project.outbox)
            var pass = OutboxPass()
            func next() throws -> OutboxCensus { try outbox.census(&pass) }
            for (tenant, seconds) in [("t1", 5), ("t2", 70)] as [(Text, Int64)] {
                try await Self.put("a", .pending, dueAt: now - .seconds(seconds), tenantID: tenant, server)
                try await Self.put("b", .pending, dueAt: now - .seconds(1), tenantID: tenant, server)
            }
            #expect(try next() == Self.census(pending: 4, dead: 0, overdue: .seconds(70)))
            try await Self.put("a", .pending, dueAt: now - .seconds(900), tenantID: "t3", server)
            let past = Self.census(pending: 5, dead: 0, overdue: .seconds(70), isComplete: false)
            #expect(try next() == past)
        }
    }
}

/// Which tenants have a counter of their own, and what the counters say.
@Suite struct TenantCallsTests {
    private static func calls(counted: Int, shown: Int) -> TenantCalls {
        var limits = Limits()
        (limits.tenantsCountedMax, limits.tenantsShownMax) = (counted, shown)
        return TenantCalls(limits: limits)
    }

    @Test func `Counts are exact while there are places, and those with the most are shown`() {
        let calls = Self.calls(counted: 3, shown: 2)
        for (tenant, count) in [("a", 1), ("b", 3), ("c", 2)] as [(Text, Int)] {
            for _ in 0..<count { _ = calls.count(tenant) }
        }
        #expect(calls.most.map(\.tenantID) == ["b", "c"])
        #expect(calls.most.map(\.count) == [3, 2])
    }

    @Test func `A new tenant takes the place of the one with the fewest, and no count ever falls`() {
        let calls = Self.calls(counted: 2, shown: 2)
        let first = calls.count("a")
        for _ in 0..<4 { _ = calls.count("b") }
        _ = calls.count("c")
        #expect(calls.most.map(\.tenantID) == ["b", "c"])
        #expect(calls.most.map(\.count) == [4, 2])
        // A caller that kept the counter of "a" notices, and looks again.
        #expect(!first.add())
        _ = calls.count("a")
        #expect(calls.most.map(\.count) == [4, 3])
    }

    @Test func `A tenant with a large share is found among thousands of others`() {
        var random = SeededRandom.printed()
        let calls = Self.calls(counted: 50, shown: 20)
        var (kept, exact): (TenantCalls.Place?, UInt64) = (nil, 0)
        for number in 0..<50_000 {
            if UInt64.random(in: 0..<20, using: &random) == 0 {
                exact += 1
                if kept?.add() != true { kept = calls.count("heavy") }
            } else {
                _ = calls.count(Text("tenant-\(number)"))
            }
        }
        let found = calls.most.first { $0.tenantID == "heavy" }?.count ?? 0
        #expect(found >= exact && found <= exact + 50_000 / 50)
    }
}

import Base
import Glibc
import Messages
import Reactor
import Service
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// Mail of a cluster, which each node could deliver.
@Suite struct MailClaimTests {
    private static let claimByNobody = [UInt8](repeating: 9, count: 16)

    private func makeReceiver() -> FakeHTTPServer {
        FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
    }

    /// A message that a node which is gone now had claimed.
    private func leaveClaimed(
        _ client: IdentityClient, by claimant: [UInt8] = claimByNobody, until: Timestamp, to url: String
    ) async throws -> Text {
        _ = try client.signUp("ada@example.com")
        try client.sendOob(.passwordReset, email: "ada@example.com")
        let held = try await client.newestMail { $0.state == .held }
        try client.deliverByWebhook(url: url)
        try await client.server.project.store.write { transaction in
            var stored = try transaction.reading.outboxMessage(held.messageID, tenantID: .empty)
            stored.message?.state = .pending
            stored.message?.nextAttemptAtMicros = until.microseconds
            stored.claimant = claimant
            try transaction.putOutbox(stored, tenantID: .empty)
        }
        return held.messageID
    }

    @Test func whatADeliveryWritesIsNotCountedAsTheCallsThatAskedForIt() async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            let later = server.clock.clock.now() + .minutes(2)
            let id = try await leaveClaimed(client, by: [], until: later, to: "\(receiver.url)/mail")
            let meter = WriteMeter()
            _ = try await WriteMeter.$current.withValue(meter) {
                try await server.project.outbox.retry(id, tenantID: .empty, validateOnly: false, origin: .server)
            }
            try await until("the mail is sent") { try client.mails().first?.message.state == .sent }
            #expect(meter.changeCount == 1)
        }
    }

    @Test func eachMailGoesOutOnceAlthoughBothNodesDeliver() async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            try one.deliverByWebhook(url: "\(receiver.url)/mail")
            for number in 0..<20 {
                let client = number % 2 == 0 ? one : two
                _ = try client.signUp(Text("user\(number)@example.com"))
                try client.sendOob(.passwordReset, email: Text("user\(number)@example.com"))
            }
            try await until("every mail is sent") {
                await first.project.mailer.deliverDue()
                await second.project.mailer.deliverDue()
                try await first.project.store.reachJournalEnd()
                return try one.mails().allSatisfy { $0.message.state == .sent }
            }
            #expect(receiver.requestCount("/mail") == 20)
            #expect(first.project.mailer.takenOverCount.value + second.project.mailer.takenOverCount.value == 0)
        }
    }

    /// Lets both nodes look at the queue, with everything that either of them wrote.
    private func deliverDue(_ nodes: TwoNodes) async throws {
        for server in [nodes.first, nodes.second] {
            try await server.project.store.reachJournalEnd()
            await server.project.mailer.deliverDue()
        }
    }

    private func takenOverCount(_ nodes: TwoNodes) -> UInt64 {
        nodes.first.project.mailer.takenOverCount.value + nodes.second.project.mailer.takenOverCount.value
    }

    /// By the second node's clock, the first node's claim is over as soon as it is made.
    @Test func aNodeWhoseClockIsAheadTakesNoMailOverThatIsOnItsWay() async throws {
        let answering = Semaphore()
        let receiver = FakeHTTPServer { _ in
            answering.wait()
            return .response(HTTPResponse(status: 200, body: []))
        }
        defer { receiver.close() }
        // Another request, which a fault would make, is answered as well.
        defer { for _ in 0..<4 { answering.signal() } }
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() + .minutes(3)))
        try await withTwoNodes(
            clock: clocks.0, secondClock: clocks.1, configure: { $0.limits.journal.mailClaimGrace = .zero }
        ) { nodes in
            let client = try IdentityClient(nodes.first)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await until("the first node sends the mail") { receiver.requestCount("/mail") == 1 }
            for _ in 0..<3 {
                try await nodes.second.project.store.reachJournalEnd()
                await nodes.second.project.mailer.deliverDue()
                clocks.1.advance(by: .seconds(30))
            }
            #expect(receiver.requestCount("/mail") == 1)
            answering.signal()
            try await until("the first node says what became of the mail") {
                try client.mails().first?.message.state == .sent
            }
            try await deliverDue(nodes)
            #expect(receiver.requestCount("/mail") == 1)
            #expect(takenOverCount(nodes) == 0)
        }
    }

    /// A mail of two nodes that a third one claimed, which is gone.
    private struct AbandonedMail {
        let nodes: TwoNodes
        let client: IdentityClient
        let receiver: FakeHTTPServer
        let id: Text
        /// The end of the claim.
        let end: Timestamp
    }

    private func withAbandonedMail(grace: Duration, _ body: (AbandonedMail) async throws -> Void) async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withTwoNodes(configure: { $0.limits.journal.mailClaimGrace = grace }) { nodes in
            let client = try IdentityClient(nodes.first)
            let end = nodes.first.clock.clock.now() + .minutes(2)
            let id = try await leaveClaimed(client, until: end, to: "\(receiver.url)/mail")
            try await body(AbandonedMail(nodes: nodes, client: client, receiver: receiver, id: id, end: end))
        }
    }

    private func expectTakenOver(_ mail: AbandonedMail) async throws {
        try await until("the mail is taken over") {
            try await deliverDue(mail.nodes)
            return try mail.client.mails().first?.message.state == .sent
        }
        #expect(mail.receiver.requestCount("/mail") == 1)
        #expect(takenOverCount(mail.nodes) == 1)
    }

    @Test func theMailOfANodeThatIsGoneIsTakenOverWhenItsClaimIsOver() async throws {
        try await withAbandonedMail(grace: .zero) { mail in
            let clock = mail.nodes.first.clock
            // The claim also holds on a node that is asked to deliver the mail now: it is on its way.
            let retried: OutboxRetryResponse = try IdentityClient(mail.nodes.second).client.call(
                "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: mail.id))
            #expect(retried.message?.nextAttemptAtMicros == mail.end.microseconds)
            // From its end on, the nodes see the claim as one that is due.
            for passed in [.zero, .minutes(2), Limits().journal.mailClaim - .seconds(1)] as [Duration] {
                clock.advance(by: passed)
                try await deliverDue(mail.nodes)
                #expect(mail.receiver.requestCount("/mail") == 0)
            }
            clock.advance(by: .seconds(1))
            try await expectTakenOver(mail)
            #expect(try mail.client.mails().first?.message.attempts == 2)
        }
    }

    /// The claim is over by the clock, and the node that has it may have sent the mail before an outage.
    @Test func aRetryDoesNotSendAMailThatANodeMayHaveSent() async throws {
        try await withAbandonedMail(grace: .zero) { mail in
            let first = mail.nodes.first
            first.clock.advance(by: .minutes(3))
            let _: OutboxRetryResponse = try mail.client.client.call(
                "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: mail.id))
            try await deliverDue(mail.nodes)
            #expect(mail.receiver.requestCount("/mail") == 0)
            let stored = try first.project.store.read { try $0.outboxMessage(mail.id, tenantID: .empty) }
            #expect(stored.claimant == Self.claimByNobody)
            first.clock.advance(by: Limits().journal.mailClaim)
            try await expectTakenOver(mail)
        }
    }

    @Test func afterAnOutageTheNodeThatSentAMailSaysSoFirst() async throws {
        try await withAbandonedMail(grace: .hours(1)) { mail in
            for passed in [.minutes(3), Limits().journal.mailClaim] as [Duration] {
                mail.nodes.first.clock.advance(by: passed)
                try await deliverDue(mail.nodes)
            }
            #expect(mail.receiver.requestCount("/mail") == 0)
            #expect(try mail.client.mails().first?.message.state == .pending)
        }
    }

    /// The node that looks first has a damaged copy. Its decision must not be that of all nodes.
    @Test func `A message that one node cannot read is delivered by another`() async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withTwoNodes { nodes in
            let client = try IdentityClient(nodes.first)
            let due = nodes.first.clock.clock.now() + .minutes(2)
            let id = try await leaveClaimed(client, by: [], until: due, to: "\(receiver.url)/mail")
            let store = nodes.second.project.store
            try await store.reachJournalEnd()
            let (rows, row) = (Tables.outbox.declaration.asBytes, TenantTextKey(.empty, id).bytes)
            try await store.write { transaction in
                try transaction.putDamaged(rows, row, try transaction.get(rows, row) ?? [])
            }
            await #expect(throws: StoreError.corrupt(table: "outbox")) {
                try await store.write { _ = try $0.reading.outboxMessage(id, tenantID: .empty) }
            }
            nodes.first.clock.advance(by: .minutes(2))
            await nodes.second.project.mailer.deliverDue()
            try await until("the mail is sent") {
                try await deliverDue(nodes)
                return try client.mails().first?.message.state == .sent
            }
            #expect(receiver.requestCount("/mail") == 1)
            #expect(takenOverCount(nodes) == 0)
            // What the other node wrote is whole here, too.
            try await store.reachJournalEnd()
            let stored = try store.read { try $0.outboxMessage(id, tenantID: .empty) }
            #expect(stored.message?.state == .sent)
        }
    }

    /// As many rows of each kind as a tenant may have deliveries at a time. Nobody can read the messages of some.
    @Test func rowsThatLeadToNoMessageKeepNoMailFromGoingOut() async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withTwoNodes(configure: { $0.limits.journal.mailClaimGrace = .zero }) { nodes in
            let client = try IdentityClient(nodes.first)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            let early = nodes.first.clock.clock.now() - .hours(1)
            let rows = (0..<DeliveryPlaces.perLineMax).flatMap { number in
                ["left", "broken"].map { OutboxDueKey(early, .empty, Text("\($0)\(number)")) }
            }
            try await nodes.first.project.store.write { transaction in
                for row in rows {
                    try transaction.put(Tables.outboxDue, row, [])
                    guard row.messageID.string.hasPrefix("broken") else { continue }
                    let bytes = Table<TenantTextKey, [UInt8]>(
                        id: Tables.outbox.id, name: "", owner: .nobody, purge: .noTenant)
                    try transaction.put(bytes, TenantTextKey(.empty, row.messageID), [0xFF])
                }
            }
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await until("the mail comes out from behind rows that lead to no message") {
                await nodes.first.project.mailer.deliverDue()
                return receiver.requestCount("/mail") == 1
            }
            let left = try rowsLeft(of: rows, nodes.first)
            #expect(!left.isEmpty && left.allSatisfy { $0.messageID.string.hasPrefix("broken") })
            nodes.first.clock.advance(by: Limits().journal.unreadableMailLeft)
            try await until("the messages that no node can read leave the queue") {
                await nodes.first.project.mailer.deliverDue()
                return try rowsLeft(of: rows, nodes.first).isEmpty
            }
        }
    }

    private func rowsLeft(of rows: [OutboxDueKey], _ server: TestServer) throws -> [OutboxDueKey] {
        try server.project.store.read { transaction in
            try rows.filter { try transaction.get(Tables.outboxDue, $0) != nil }
        }
    }

    @Test func aServerOutsideOfAClusterClaimsNothing() async throws {
        let receiver = makeReceiver()
        defer { receiver.close() }
        try await withServer { server in
            guard !server.project.store.isInCluster else { return }
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let sent = try await client.newestMail { $0.state == .sent }
            #expect(sent.attempts == 1)
            let stored = try server.project.store.read { try $0.outboxMessage(sent.messageID, tenantID: .empty) }
            #expect(stored.claimant.isEmpty)
        }
    }
}

import Base
import Crypto
import JSON
import Messages
import Outbound
import Reactor
import Store

/// Delivers what waits in the outbox, by SMTP or webhook, at least once: a mail is sent when the server took it.
///
/// Runs on one loop; each delivery on the blocking pool. What cannot be delivered is tried again, later each time, and
/// given up after `attemptsMax`. Everything about a delivery is in the store: a stop loses nothing.
public actor Mailer {
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let resources: Resources
    private let configs: EmailConfigs
    private let contents: OobDelivery
    private let smtp: SMTPClient
    private let http: HTTPClient
    private var isRunning = false
    private var isAskedAgain = false
    private var isStopped = false

    public static let attemptsMax = 12
    static let inFlightMax = 8
    private static let batchMax = 64

    init(
        resources: Resources, configs: EmailConfigs, contents: OobDelivery, smtp: SMTPClient, http: HTTPClient,
        loop: EventLoop
    ) {
        self.resources = resources
        self.configs = configs
        self.contents = contents
        self.smtp = smtp
        self.http = http
        self.loop = loop
    }

    /// How long after the n-th failed attempt the next comes: 30 s, doubled each time, six hours at most, ±20 %.
    static func backoff(afterAttempts attempts: Int, random: UInt64) -> Duration {
        let doublings = min(max(0, attempts - 1), 10)
        let base = min(30_000 * Int64(1 << doublings), 6 * 3_600_000)
        let spread = Int64(random % UInt64(base * 2 / 5 + 1))
        return .milliseconds(base - base / 5 + spread)
    }

    // MARK: Running

    private lazy var timer = Timer(on: loop) { [weak self] in
        self?.assumeIsolated { $0.wake() }
    }

    /// Looks for what is due once a second from here on.
    public func start() { wake() }

    public func stop() {
        isStopped = true
        timer.cancel()
    }

    /// There may be something to deliver; returns at once.
    func wake() {
        guard !isStopped else { return }
        timer.arm(after: .seconds(1))
        if isRunning {
            isAskedAgain = true
            return
        }
        Task(executorPreference: loop) { await self.deliverDue() }
    }

    /// Tries everything that is due now once; returns when all of it was tried.
    public func deliverDue() async {
        guard !isRunning else {
            isAskedAgain = true
            return
        }
        isRunning = true
        defer { isRunning = false }
        repeat {
            isAskedAgain = false
            let due =
                (try? resources.store.read { try $0.dueMessages(now: resources.clock.now(), limit: Self.batchMax) })
                ?? []
            for start in stride(from: 0, to: due.count, by: Self.inFlightMax) where !isStopped {
                await deliver(Array(due[start..<min(start + Self.inFlightMax, due.count)]))
            }
            if due.count == Self.batchMax { isAskedAgain = true }
        } while isAskedAgain && !isStopped
    }

    private func deliver(_ due: [OutboxDueKey]) async {
        await withTaskGroup(of: Void.self) { group in
            for key in due { group.addTask { await self.deliver(key) } }
        }
    }

    private nonisolated func deliver(_ key: OutboxDueKey) async {
        do {
            let stored = try resources.store.read {
                try $0.outboxMessage(key.messageID, tenantID: key.tenant)
            }
            let outcome = await attempt(stored, tenantID: key.tenant)
            try await settle(key, outcome)
        } catch {
            // A message that was deleted meanwhile leaves its due row to nobody.
            try? await resources.store.write { _ = try $0.delete(Tables.outboxDue, key) }
        }
    }

    // MARK: One message

    enum Outcome: Sendable, Equatable {
        case sent
        case failed(Text)
        case refused(Text)
    }

    private nonisolated func attempt(_ stored: StoredOutboxMessage, tenantID: Text) async -> Outcome {
        guard let message = stored.message else { return .refused("the record is damaged") }
        do {
            let config = try configs.stored(tenantID: tenantID)
            let contents = try contents.contents(of: stored, tenantID: tenantID)
            switch config.config?.delivery {
            case .smtp: return await bySMTP(message, contents, config, tenantID)
            case .webhook: return await byWebhook(message, contents, config, tenantID)
            default: return .refused("the tenant delivers nothing by itself any more")
            }
        } catch {
            return .refused("the message cannot be read")
        }
    }

    private nonisolated func bySMTP(
        _ message: OutboxMessage, _ contents: OutboxContents, _ stored: StoredEmailConfig, _ tenantID: Text
    ) async -> Outcome {
        guard let config = stored.config, let smtp = config.smtp, let port = UInt16(exactly: smtp.port) else {
            return .failed("no mail server is configured")
        }
        let mail = MailMessage(
            messageID: message.messageID, senderName: config.senderName, senderAddress: config.senderAddress,
            replyTo: config.replyTo, recipient: message.to, contents: contents,
            createdAt: Timestamp(microseconds: message.createdAtMicros))
        let security: SMTPServer.Security =
            switch smtp.security {
            case .tls: .tls
            case .none: .none
            case .starttls, .unspecified: .startTLS
            }
        let server = SMTPServer(
            host: smtp.host, port: port, security: security, username: smtp.username,
            password: configs.password(stored, tenantID: tenantID),
            policy: NetworkPolicy(allowsPrivateAddresses: config.allowPrivateAddresses))
        do {
            try await self.smtp.send(
                Secret(mail.bytes()), from: config.senderAddress, to: message.to, through: server, tenant: tenantID,
                deadline: Instant.now.advanced(by: .seconds(60)))
            return .sent
        } catch SMTPError.permanent(let code) {
            return .refused(Text("the mail server refused it with \(code)"))
        } catch SMTPError.notAuthenticated {
            return .failed("the mail server does not take the user name and password")
        } catch SMTPError.transient(let code, let cause) {
            let what = cause.map { "\($0)" } ?? "broken"
            return .failed(Text("the mail server: \(what)\(code > 0 ? ", \(code)" : "")"))
        } catch {
            return .failed("the outgoing queue is full")
        }
    }

    private nonisolated func byWebhook(
        _ message: OutboxMessage, _ contents: OutboxContents, _ stored: StoredEmailConfig, _ tenantID: Text
    ) async -> Outcome {
        guard let config = stored.config, let webhook = config.webhook, let url = HTTPURL(webhook.url) else {
            return .failed("no webhook is configured")
        }
        let body = Webhook.body(message, contents, tenantID: tenantID)
        let signature = Webhook.signature(
            of: body, at: resources.clock.now(), secret: configs.signingSecret(stored, tenantID: tenantID))
        let request = HTTPRequest(
            url, method: .post(Secret(body)),
            fields: [
                HTTPRequest.Field("Content-Type", "application/json"),
                HTTPRequest.Field("Postern-Signature", signature),
            ],
            policy: NetworkPolicy(
                allowsHTTPToLoopback: config.allowPrivateAddresses, allowsPrivateAddresses: config.allowPrivateAddresses
            ))
        do {
            let answer = try await http.send(
                request, tenant: tenantID, deadline: Instant.now.advanced(by: .seconds(30)))
            if (200...299).contains(answer.status) { return .sent }
            let isFinal = (400...499).contains(answer.status) && ![408, 409, 425, 429].contains(answer.status)
            let what = Text("the webhook answered \(answer.status)")
            return isFinal ? .refused(what) : .failed(what)
        } catch let error as OutboundError {
            return .failed(Text("the webhook: \(error)"))
        } catch {
            return .failed("the outgoing queue is full")
        }
    }

    private nonisolated func settle(_ key: OutboxDueKey, _ outcome: Outcome) async throws {
        let now = resources.clock.now()
        let random = resources.random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        try await resources.store.write { transaction in
            _ = try transaction.delete(Tables.outboxDue, key)
            guard var stored = try transaction.get(Tables.outbox, TenantTextKey(key.tenant, key.messageID)),
                var message = stored.message
            else { return }
            message.settle(outcome, random: random, now: now)
            stored.message = message
            try transaction.putOutbox(stored, tenantID: key.tenant)
        }
    }
}

extension OutboxMessage {
    /// What an attempt made of the message.
    mutating func settle(_ outcome: Mailer.Outcome, random: UInt64, now: Timestamp) {
        attempts &+= 1
        nextAttemptAtMicros = 0
        switch outcome {
        case .sent:
            state = .sent
            sentAtMicros = now.microseconds
            lastError = .empty
        case .refused(let what):
            state = .dead
            lastError = what
        case .failed(let what):
            lastError = what
            guard Int(attempts) < Mailer.attemptsMax else { return state = .dead }
            state = .pending
            let wait = Mailer.backoff(afterAttempts: Int(attempts), random: random)
            nextAttemptAtMicros = (now + wait).microseconds
        }
    }
}

/// What a webhook is sent, and how it knows that it came from here.
enum Webhook {
    static func body(_ message: OutboxMessage, _ contents: OutboxContents, tenantID: Text) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("message_id", text: message.messageID)
        json.member("tenant_id", text: tenantID)
        json.member("request_type", text: Text("\(message.requestType)"))
        json.member("to", text: message.to)
        json.member("subject", text: contents.subject)
        json.member("text", text: contents.text)
        json.member("html", text: contents.html)
        json.member("link", text: contents.link)
        json.member("created_at_micros", integer: message.createdAtMicros)
        json.endObject()
        return json.bytes
    }

    /// `t=<seconds>,v1=<hex of HMAC-SHA256(secret, "<seconds>.<body>")>`
    static func signature(of body: [UInt8], at time: Timestamp, secret: Secret) -> Text {
        let signed = [UInt8]("\(time.seconds).".utf8) + body
        return Text("t=\(time.seconds),v1=\(Hex.encode(HMACKey(secret).tag(of: signed)))")
    }
}

extension ReadTransaction {
    /// What is to be delivered by now, the longest overdue first.
    fileprivate func dueMessages(now: Timestamp, limit: Int) throws -> [OutboxDueKey] {
        var due: [OutboxDueKey] = []
        try scan(Tables.outboxDue, limit: limit) { key, _ in
            guard key.count > 8 else { return true }
            let time = Timestamp(microseconds: Int64(bigEndian: key.loadUnaligned(as: Int64.self)))
            guard time <= now else { return false }
            let rest = [UInt8](key.dropFirst(8))
            guard let zero = rest.firstIndex(of: 0) else { return true }
            due.append(
                OutboxDueKey(
                    time, Text(unchecked: Array(rest[..<zero])), Text(unchecked: Array(rest[(zero + 1)...]))))
            return true
        }
        return due
    }
}

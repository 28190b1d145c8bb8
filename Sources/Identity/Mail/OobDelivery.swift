public import Base
public import Messages
public import Rules
public import Store

/// A code that is to be made: its purpose, its user, and the mailbox that gets it.
public struct OobOrder: Sendable {
    public var type: OobRequestType
    /// "" where the address has no account.
    public var uid: Text = .empty
    /// The account's email, or the address that signs in.
    public var email: Text
    public var newEmail: Text = .empty
    public var continueURL: Text = .empty
    public var displayName: Text = .empty
    /// The language of the mail.
    public var locale: Text = .empty
    /// The factor of a REVERT_SECOND_FACTOR_ADDITION.
    var factorID: Text = .empty
    /// Checks, in the code's own transaction, that the signed-in user who asked for it may still do so. Nil where
    /// anybody may ask.
    public var requireAsker: (@Sendable (borrowing ReadTransaction) throws -> Void)?
    /// The pending sign-in whose enrollment credential asked for the code. Empty where none did.
    public var pendingSignInID: [UInt8] = []
    /// A decoy is written, queued and finished like any other code, but nothing is sent.
    public var isDecoy = false

    public init(_ type: OobRequestType, email: Text) {
        self.type = type
        self.email = email
    }

    /// The mailbox that the code goes to. It has to prove the new address, or the old one when that was replaced.
    public var recipient: Text { type == .verifyAndChangeEmail ? newEmail : email }
}

/// A code that was made; with `validateOnly`, all but its expiry is empty.
public struct MadeOobCode: Sendable {
    public let code: Secret
    public let link: Secret
    /// The link "This was not me"; empty for a kind of code without one.
    public let notMeLink: Secret
    public let expiresAt: Timestamp
}

/// Makes codes and the mail that carries them: both in one transaction, so that there is never one without the other.
public struct OobDelivery: Sendable {
    private let resources: Resources
    private let seal: OutboxSeal
    private let actionURL: Text
    private let configs: EmailConfigs
    /// Mails that went out in the server's own words, because the template would have made them too long.
    public let templateFallbacks = Counter()
    /// Changes of an email that were refused because the account has too many ways back.
    public let recoveriesRefused = Counter()

    /// How long a message stays in the outbox.
    static let messageKept = Duration.hours(24 * 7)

    init(resources: Resources, seal: OutboxSeal, actionURL: Text, configs: EmailConfigs) {
        self.resources = resources
        self.configs = configs
        self.seal = seal
        self.actionURL = actionURL
    }

    /// Makes a code and puts its mail into the outbox. `answer` is kept for a repeat of the request.
    public func send(
        _ order: OobOrder, answer: AccountsSendOobCodeResponse, settings: TenantSettings, origin: Origin
    ) async throws {
        let now = resources.clock.now()
        let prepared = try prepare(order, settings: settings, now: now)
        try await resources.store.write { transaction in
            _ = try transaction.answeringRepeat(of: origin, now: now) {
                // A deleted tenant sends no mail, and once its rows are purged, nothing would remove a new one again.
                try transaction.reading.requireLiveTenant(settings.tenantID)
                // A change of the password that came first has voided the codes that there were.
                try order.requireAsker?(transaction.reading)
                let isCurrent = try transaction.reading.isCurrent(order, tenantID: settings.tenantID)
                try (isCurrent ? prepared : prepared.asDecoy()).put(in: transaction)
                return answer
            }
        }
    }

    /// Makes a code for an admin, who brings it to its user by other means. With `validateOnly` no code is made: code
    /// and links are empty. EMAIL_NOT_FOUND when the account was deleted meanwhile, or got another email.
    public func generate(
        _ order: OobOrder, settings: TenantSettings, validateOnly: Bool, origin: Origin
    ) async throws -> MadeOobCode {
        let now = resources.clock.now()
        let page = actionPage(try configs.get(tenantID: settings.tenantID))
        if validateOnly {
            return MadeOobCode(
                code: .empty, link: .empty, notMeLink: .empty, expiresAt: now + OobCodes.lifetime(order.type))
        }
        let codes = prepareCodes(order, page: page, settings.tenantID, now: now)
        try await resources.store.write { transaction in
            try transaction.refusingRepeat(of: origin, now: now) {
                try transaction.reading.requireLiveTenant(settings.tenantID)
                guard try transaction.reading.isCurrent(order, tenantID: settings.tenantID) else {
                    throw Failure.noUserWithEmail
                }
                try codes.put(in: transaction)
                try transaction.appendEvent(
                    .oobLinkGenerated, tenantID: settings.tenantID, uid: order.uid, origin: origin,
                    detail: Text("\(order.type)"), now: now)
            }
        }
        return MadeOobCode(
            code: codes.code, link: codes.link, notMeLink: codes.rejection?.link ?? .empty,
            expiresAt: Timestamp(microseconds: codes.stored.expiresAtMicros))
    }

    /// A code and its mail before they are written; for a caller that writes them together with something else.
    func prepare(_ order: OobOrder, settings: TenantSettings, now: Timestamp) throws -> PreparedOob {
        let config = try configs.get(tenantID: settings.tenantID)
        let codes = prepareCodes(order, page: actionPage(config), settings.tenantID, now: now)
        let (link, notMeLink) = codes.linkTexts
        let values = MailText.Values(
            appName: settings.tenant.displayName, email: order.email, newEmail: order.newEmail,
            displayName: order.displayName, link: link, notMeLink: notMeLink)
        let words = MailText(
            order.type, values, templates: config.templates, locale: order.locale,
            byteCountMax: resources.limits.mailBytesMax)
        if words.isFallback { templateFallbacks.add() }
        let messageID = seal.messageID(at: now)
        let contents = OutboxContents(
            subject: words.subject, text: words.text, html: words.html, link: link, notMeLink: notMeLink)
        let sealed = try seal.seal(contents, tenantID: settings.tenantID, messageID: messageID)
        let isDelivered = config.delivery != .outbox
        let message = OutboxMessage(
            messageID: messageID, requestType: order.type, to: order.recipient, state: isDelivered ? .pending : .held,
            createdAtMicros: now.microseconds, nextAttemptAtMicros: isDelivered ? now.microseconds : 0,
            expiresAtMicros: (now + Self.messageKept).microseconds)
        return PreparedOob(
            codes: codes,
            message: StoredOutboxMessage(
                message: message, sealedContents: sealed, decoy: order.isDecoy,
                deliverUntilMicros: codes.stored.expiresAtMicros))
    }

    /// A code and its link, without a mail. A mail's words cost much more to make.
    private func prepareCodes(_ order: OobOrder, page: Text, _ tenantID: Text, now: Timestamp) -> PreparedCodes {
        let code = Base64.url.encode(resources.random.bytes(32))
        var stored = StoredOobCode(
            requestType: order.type, uid: order.uid, email: order.email, newEmail: order.newEmail,
            createdAtMicros: now.microseconds, expiresAtMicros: (now + OobCodes.lifetime(order.type)).microseconds,
            decoy: order.isDecoy, factorID: order.factorID, pendingSignInID: order.pendingSignInID)
        var rejection: PreparedRejection?
        if OobCodes.isRejectable(order.type) {
            let made = PreparedRejection(of: stored, code: code, page: page, tenantID, resources.random)
            stored.twinHash = OobCodes.hash(made.code)
            rejection = made
        }
        let link = ActionLink.make(
            base: page, order.type, code: Text(unchecked: code), tenantID: tenantID, continueURL: order.continueURL)
        return PreparedCodes(
            tenantID: tenantID, code: Secret(code), link: Secret(link.bytes), rejection: rejection, stored: stored)
    }

    /// The page that the tenant's links lead to.
    func actionPage(tenantID: Text) throws -> Text { actionPage(try configs.get(tenantID: tenantID)) }

    func actionPage(_ config: EmailConfig) -> Text { config.actionURL.isEmpty ? actionURL : config.actionURL }

    /// The contents of a message, mail or SMS. OUTBOX_MESSAGE_UNREADABLE when it was sealed under another master key.
    public func contents(of stored: StoredOutboxMessage, tenantID: Text) throws -> OutboxContents {
        try seal.open(stored, tenantID: tenantID)
    }
}

extension ReadTransaction {
    /// Whether the account that a code is for still has the email that the code was asked for. The account's deletion
    /// and a change of its email void the codes that there are, so none may come after them.
    fileprivate func isCurrent(_ order: OobOrder, tenantID: Text) throws -> Bool {
        guard !order.uid.isEmpty else { return true }
        guard let account = try account(UserKey(tenantID, order.uid)) else { return false }
        return Email(stored: account.user.email) == Email(stored: order.email)
    }
}

/// A code that is ready to be written, and the second code of the same mail if there is one.
struct PreparedCodes: Sendable {
    let tenantID: Text
    let code: Secret
    let link: Secret
    fileprivate(set) var rejection: PreparedRejection?
    fileprivate(set) var stored: StoredOobCode

    /// The links for the words of a mail.
    var linkTexts: (link: Text, notMeLink: Text) {
        (
            link.withBytes { Text(unchecked: [UInt8]($0)) },
            rejection?.link.withBytes { Text(unchecked: [UInt8]($0)) } ?? .empty
        )
    }

    func put(in transaction: borrowing WriteTransaction) throws {
        try transaction.putOobCode(code, stored, tenantID: tenantID)
        if let rejection { try transaction.putOobCode(rejection.code, rejection.stored, tenantID: tenantID) }
    }
}

/// A code and its mail, ready to be written together.
struct PreparedOob: Sendable {
    private(set) var codes: PreparedCodes
    private(set) var message: StoredOutboxMessage

    var stored: StoredOobCode { codes.stored }

    /// This code as a way back to the email of `account`, at a place.
    func asWayBack(to account: Account, place: Int64) -> PreparedOob {
        var recovery = self
        recovery.codes.stored = stored.asWayBack(to: account, place: place)
        return recovery
    }

    /// This code and its mail as a decoy: nothing is sent, and the codes open nothing.
    fileprivate func asDecoy() -> PreparedOob {
        var decoy = self
        decoy.codes.stored.decoy = true
        decoy.codes.rejection?.stored.decoy = true
        decoy.message.decoy = true
        return decoy
    }

    func put(in transaction: borrowing WriteTransaction) throws {
        try codes.put(in: transaction)
        try transaction.putOutbox(message, tenantID: codes.tenantID)
    }
}

/// The second code of a mail, REJECT_EMAIL: as long-lived as the first, whose record it copies.
struct PreparedRejection: Sendable {
    let code: Secret
    let link: Secret
    fileprivate(set) var stored: StoredOobCode

    init(of first: StoredOobCode, code firstCode: [UInt8], page: Text, _ tenantID: Text, _ random: RandomSource) {
        let code = Base64.url.encode(random.bytes(32))
        let link = ActionLink.make(
            base: page, .rejectEmail, code: Text(unchecked: code), tenantID: tenantID, continueURL: .empty)
        var stored = first
        stored.requestType = .rejectEmail
        // This code takes an address away, so it stays good when the credential that asked for its twin is over.
        stored.pendingSignInID = []
        stored.twinHash = OobCodes.hash(Secret(firstCode))
        self.code = Secret(code)
        self.link = Secret(link.bytes)
        self.stored = stored
    }
}

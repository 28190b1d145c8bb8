import Base
import Identity
import Messages
import TestSupport
import Testing

/// A thief sits in an account of a tenant whose users may change their email without proving the new one. Whatever the
/// thief does, in whatever order, the code that was mailed to the owner takes the account back.
@Suite struct EmailRecoveryAttackTests {
    @Test func whateverAThiefDoesTheOwnersCodeTakesTheAccountBack() async throws {
        var random = SeededRandom.printed()
        try await withServer { server in
            let client = try IdentityClient(server)
            // Proves the clock by a while in which it is right: the server follows an unproven clock when it is set.
            server.clock.advance(by: .minutes(11))
            await server.project.sweep()
            try client.setTenant(["enable_email_privacy", "enable_email_link_signin"]) {
                $0.enableEmailPrivacy = false
                $0.enableEmailLinkSignin = true
            }
            var ownersWhoWereMailed = 0
            var moves: [StolenAccount.Move: Int] = [:]
            // 80 stories, and more until each move was taken once, since some moves are rarely possible.
            var number = 0
            while number < 80 || number < 800 && moves.count < StolenAccount.Move.allCases.count {
                defer { number += 1 }
                var account = try StolenAccount(client, number: number)
                for _ in 0..<(2 + random.below(8)) {
                    let move = StolenAccount.Move.allCases[random.below(StolenAccount.Move.allCases.count)]
                    if try account.make(move, &random) { moves[move, default: 0] += 1 }
                }
                if try account.ownerComesBack() { ownersWhoWereMailed += 1 }
            }
            // The test would show nothing if the moves were refused.
            #expect(ownersWhoWereMailed > 40)
            for move in StolenAccount.Move.allCases { #expect(moves[move, default: 0] > 0, "\(move)") }
        }
    }
}

/// One account, what was mailed about it, and what the thief holds.
private struct StolenAccount {
    enum Move: CaseIterable {
        case changeWithProof, changeWithoutProof, changeToAStrangersAddress, verify, recover, resetPassword
        case signInByLink, signInByProvider, registerTheFreedAddress, strangerProvesTheAddress, clockBack, clockForward
        case changePassword, adminRename
    }

    private let client: IdentityClient
    private let number: Int
    private let uid: Text
    private let home: Text
    private let stranger: Text
    private let mailboxesOfTheThief: [Text]
    private var password: Text = "correct horse"
    private var seenMessages: Set<Text> = []
    private var recoveries: [(to: Text, code: Secret)] = []
    private var newestCodes: [OobRequestType: Secret] = [:]
    private var trail: [String] = []

    init(_ client: IdentityClient, number: Int) throws {
        self.client = client
        self.number = number
        home = Text("owner@s\(number).example")
        stranger = Text("stranger@s\(number).example")
        mailboxesOfTheThief = (1...3).map { Text("thief\($0)@s\(number).example") }
        let made = try client.signUp(home)
        uid = try #require(made.user?.uid)
        try client.sendOob(.verifyEmail, idToken: made.tokens!.idToken)
        try readMail()
        _ = try client.applyOob(try #require(newestCodes[.verifyEmail]))
    }

    /// Whether the server took the move. Refusals are part of the game.
    mutating func make(_ move: Move, _ random: inout SeededRandom) throws -> Bool {
        client.server.clock.advance(by: .minutes(13))
        let before = try client.get(uid)
        let refused = try attempt(move, before, &random)
        trail.append("\(move)\(refused == nil ? "" : "?\(refused!.reason)")")
        try readMail(about: before)
        return refused == nil
    }

    private mutating func attempt(_ move: Move, _ user: User, _ random: inout SeededRandom) throws -> Failure? {
        let mailbox = mailboxesOfTheThief[random.below(mailboxesOfTheThief.count)]
        let isThiefs = mailboxesOfTheThief.contains(user.email)
        do {
            switch move {
            case .changeWithProof:
                try client.sendOob(.verifyAndChangeEmail, newEmail: mailbox, idToken: try session(of: user))
                try readMail()
                _ = try client.applyOob(newestCodes[.verifyAndChangeEmail] ?? Secret([]))
            case .changeWithoutProof: try change(user, to: mailbox)
            case .changeToAStrangersAddress: try change(user, to: stranger)
            case .verify:
                guard isThiefs else { return .notTheThiefs }
                try client.sendOob(.verifyEmail, idToken: try session(of: user))
                try readMail()
                _ = try client.applyOob(newestCodes[.verifyEmail] ?? Secret([]))
            case .recover:
                let own = recoveries.filter { $0.to != home }
                guard !own.isEmpty else { return .notTheThiefs }
                _ = try client.applyOob(own[random.below(own.count)].code)
            case .resetPassword:
                guard isThiefs else { return .notTheThiefs }
                try prove(user.email, .resetPassword)
            case .signInByLink:
                guard isThiefs else { return .notTheThiefs }
                try prove(user.email, .signInByLink)
            case .signInByProvider:
                guard isThiefs else { return .notTheThiefs }
                try prove(user.email, .signInByProvider)
            case .registerTheFreedAddress: _ = try client.signUp(home, password: "the thief's other account")
            case .strangerProvesTheAddress: try strangerArrives(user, &random)
            case .clockBack: client.server.clock.step(by: .minutes(-20))
            case .clockForward: client.server.clock.advance(by: .hours(2))
            case .changePassword:
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: try session(of: user), updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret(Text("another horse").bytes)))
                password = "another horse"
            case .adminRename: try client.update(uid, ["display_name"]) { $0.displayName = "renamed" }
            }
            return nil
        } catch let failure as Failure {
            return failure
        }
    }

    /// The stranger proves an address that the thief moved the account to, and must not get into the account.
    private mutating func strangerArrives(_ user: User, _ random: inout SeededRandom) throws {
        guard user.email == stranger, !user.emailVerified else { throw Failure.notTheThiefs }
        let way = [Move.resetPassword, .signInByLink, .signInByProvider][random.below(3)]
        try prove(stranger, way)
        let signedIn = try client.signIn(.google(Text("stranger-\(number)"), email: stranger)).user?.uid
        #expect(signedIn != uid, "the stranger is in by \(way): \(trail)")
        #expect(try client.get(uid).email != stranger, "the stranger has the account: \(trail)")
    }

    private mutating func prove(_ email: Text, _ way: Move) throws {
        switch way {
        case .resetPassword:
            try client.sendOob(.passwordReset, email: email)
            try readMail()
            _ = try client.resetPassword(newestCodes[.passwordReset] ?? Secret([]), "correct horse")
            if email != stranger { password = "correct horse" }
        case .signInByLink:
            try client.sendOob(.emailSignin, email: email)
            try readMail()
            _ = try client.signIn(email, link: newestCodes[.emailSignin] ?? Secret([]))
        default: _ = try client.signIn(.google(Text("g-\(email)"), email: email))
        }
    }

    private func change(_ user: User, to email: Text) throws {
        let _: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: try session(of: user), updateMask: ProtobufFieldMask(paths: ["email"]), email: email))
    }

    /// Signs the thief in with the password; throws NOT_THE_THIEFS when the account has none.
    private func session(of user: User) throws -> Text {
        guard user.providers.contains(where: { $0.providerID == "password" }) else { throw Failure.notTheThiefs }
        let signedIn = try client.signIn(user.email, password: password)
        guard signedIn.user?.uid == uid else { throw Failure.notTheThiefs }
        return signedIn.tokens?.idToken ?? .empty
    }

    /// Reads the new mail. A recovery code goes only to an address that was verified while it was the account's.
    private mutating func readMail(about before: User? = nil) throws {
        let listed: OutboxListResponse = try client.client.call(
            "postern.v1.Outbox/List", OutboxListRequest(pageSize: 40))
        for message in listed.messages.reversed() where seenMessages.insert(message.messageID).inserted {
            guard message.to.string.hasSuffix("@s\(number).example") else { continue }
            let read: OutboxGetResponse = try client.client.call(
                "postern.v1.Outbox/Get", OutboxGetRequest(messageID: message.messageID))
            let mail = IdentityClient.Mail(message: message, contents: read.contents ?? OutboxContents())
            newestCodes[message.requestType] = mail.code
            guard message.requestType == .recoverEmail else { continue }
            recoveries.append((message.to, mail.code))
            if let before { #expect(before.emailVerified && before.email == message.to, "\(trail)") }
        }
    }

    /// The owner uses the first recovery code that came; false when none came. Afterwards the thief is locked out.
    func ownerComesBack() throws -> Bool {
        guard let own = recoveries.first(where: { $0.to == home }) else { return false }
        let refused = failure { _ = try client.applyOob(own.code) }
        #expect(refused.reason.isEmpty, "\(refused) after \(trail)")
        let user = try client.get(uid)
        #expect(user.email == home && user.emailVerified && user.providers.isEmpty, "\(trail)")
        for code in recoveries.map(\.code) + newestCodes.filter({ $0.key != .emailSignin }).map(\.value) {
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
        }
        #expect(try client.get(uid).email == home)
        return true
    }
}

extension Failure {
    /// The thief has no mailbox or password for this move now.
    fileprivate static let notTheThiefs = Failure(.failedPrecondition, "NOT_THE_THIEFS", "")
}

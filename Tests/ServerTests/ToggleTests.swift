import Base
import Crypto
import Messages
import Service
import TestSupport
import Testing
import Wire

/// The self-service toggles: every combination of the two × every method that creates, changes or deletes a user × who
/// the user is, as one generated table. Ways to sign in are the registered ones.
@Suite struct ToggleTests {
    enum Account: CaseIterable { case anonymous, password, madeByAdmin }

    struct Row: Sendable, CustomTestStringConvertible {
        let disabledSignup: Bool
        let disabledDeletion: Bool
        let account: Account

        var testDescription: String { "signup off \(disabledSignup), deletion off \(disabledDeletion), \(account)" }

        static var all: [Row] {
            var rows: [Row] = []
            for signup in [false, true] {
                for deletion in [false, true] {
                    for account in Account.allCases {
                        rows.append(Row(disabledSignup: signup, disabledDeletion: deletion, account: account))
                    }
                }
            }
            return rows
        }
    }

    /// Everything an end user or an admin can do to an account, and the toggle that may refuse it.
    enum Action {
        case signInAsNewcomer(SignInWay), signInAgain(SignInWay)
        case signIn, signInWithCustomToken, lookup, update, refresh, delete
        case adminCreate, adminGet, adminUpdate, adminClaims, adminRevoke, adminDelete

        static let all: [Action] =
            SignInWay.all.map { .signInAsNewcomer($0) } + SignInWay.returning.map { .signInAgain($0) } + [
                .signIn, .signInWithCustomToken, .lookup, .update, .refresh, .delete, .adminCreate, .adminGet,
                .adminUpdate, .adminClaims,
                .adminRevoke, .adminDelete,
            ]

        var toggle: Toggle? {
            switch self {
            case .signInAsNewcomer: .disabledUserSignup
            case .delete: .disabledUserDeletion
            default: nil
            }
        }

        /// The refusal of the action; empty: it is done.
        func answer(_ row: Row) -> String {
            switch self {
            case .signInAsNewcomer(let way): way.answerToNewcomer(isSignUpOff: row.disabledSignup)
            case .delete: row.disabledDeletion ? "ADMIN_RESTRICTED_OPERATION" : ""
            default: ""
            }
        }
    }

    @Test(arguments: Row.all)
    func refuseExactlyWhatTheyName(_ row: Row) async throws {
        try await withServer { server in
            let identity = try IdentityClient(server)
            let client = identity.client
            try identity.allowEveryMethod()
            for action in Action.all {
                // The account is made before the toggles are set, since they never touch accounts that exist.
                try Self.set(client, signup: false, deletion: false)
                let subject = try Self.makeSubject(client, row.account)
                // A user without a password cannot sign in with one.
                if case .signIn = action, subject.email.isEmpty { continue }
                if case .signInAgain(let way) = action { try way.makeKnown(identity, subject.name) }
                try Self.set(client, signup: row.disabledSignup, deletion: row.disabledDeletion)
                let refused = failure { try Self.perform(action, identity, subject) }
                #expect(refused.reason == action.answer(row), "\(action)")
                if refused.reason == "ADMIN_RESTRICTED_OPERATION" {
                    Self.expectRestricted(refused, action.toggle ?? .unspecified)
                }
            }
        }
    }

    @Test func aToggleBindsTheNextRequestOnAnyOtherConnection() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let others = try (0..<8).map { _ in try server.connect() }
            for (index, other) in others.enumerated() {
                _ = try other.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: Text("before\(index)@example.com"), password: Secret("secret1")),
                    returning: AccountsSignUpResponse.self)
            }
            try Self.set(admin, signup: true, deletion: false)
            for (index, other) in others.enumerated() {
                let failure = #expect(throws: Failure.self) {
                    try other.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: Text("after\(index)@example.com"), password: Secret("secret1")),
                        returning: AccountsSignUpResponse.self)
                }
                #expect(failure?.reason == "ADMIN_RESTRICTED_OPERATION")
            }
        }
    }

    @Test func refusalsAndTogglesSurviveARestart() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let adminKey = try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                let client = try server.connect()
                try Self.set(client, signup: true, deletion: false)
                #expect(throws: Failure.self) {
                    try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1")),
                        returning: AccountsSignUpResponse.self)
                }
                return server.adminKey
            }
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey
            ) { server in
                let client = try server.connect()
                let listed = try client.call(
                    "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(),
                    returning: TenantsListDenialsResponse.self)
                #expect(listed.denials.map(\.toggle) == [.disabledUserSignup])
                #expect(listed.denials.first?.operation == "postern.v1.Accounts/SignUp")
                #expect(listed.denials.first?.identifierHash.count == 32)
                #expect(listed.counts.map(\.count) == [1])
                let failure = #expect(throws: Failure.self) {
                    try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: "bob@example.com", password: Secret("secret1")),
                        returning: AccountsSignUpResponse.self)
                }
                #expect(failure?.reason == "ADMIN_RESTRICTED_OPERATION")
            }
        }
    }

    @Test func aRefusalIsKeptWithWhoCalledAndForWhom() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let app = try server.client(as: .app, of: "acme")
            let made: AccountsSignUpResponse = try app.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1")))
            try server.updateTenant(
                "acme", ["client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion"]
            ) {
                $0.client = ClientConfig(
                    permissions: ClientPermissions(disabledUserSignup: true, disabledUserDeletion: true))
            }
            let signUp = failure {
                let _: AccountsSignUpResponse = try app.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: "bob@example.com", password: Secret("secret1")))
            }
            let deletion = failure {
                let _: AccountsDeleteResponse = try app.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: made.tokens?.idToken ?? .empty))
            }
            let listed: TenantsListDenialsResponse = try server.connect().call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest(tenantID: "acme"))
            // The newest comes first.
            #expect(listed.denials.map(\.toggle) == [.disabledUserDeletion, .disabledUserSignup])
            #expect(listed.denials.map(\.operation) == ["postern.v1.Accounts/Delete", "postern.v1.Accounts/SignUp"])
            #expect(listed.denials.map(\.uid) == [made.user?.uid ?? "nobody", .empty])
            let quoted = [deletion, signUp].map { $0.metadata("decision_id") ?? "" }
            #expect(listed.denials.map(\.decisionID.string) == quoted)
            // "pk_<id>_<secret>"
            let key = try #require(app.apiKey).withBytes { String(decoding: $0, as: UTF8.self) }
            for denial in listed.denials {
                #expect(!denial.apiKeyID.isEmpty && key.hasPrefix("pk_\(denial.apiKeyID.string)_"))
                #expect(denial.peerAddress.string.hasPrefix("127.0.0.1"))
                #expect(denial.identifierHash.count == 32)
            }
        }
    }

    /// The address is believed, and kept, only from a key that is trusted for it.
    @Test func aRefusalKeepsTheAddressOfTheEndUser() async throws {
        try await withServer { server in
            let admin = try server.connect()
            try Self.set(admin, signup: true, deletion: false)
            for (isTrusted, address, kept) in [
                (true, "2001:DB8::0001", "2001:db8::1"), (true, "", ""), (false, "192.0.2.7", ""),
            ] as [(Bool, Text, Text)] {
                let made: ProjectCreateApiKeyResponse = try admin.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(
                        role: .app, scope: Scope(tenants: .tenantID("")), trustedEndUserIP: isTrusted))
                let app = try server.connect(authenticated: false)
                app.apiKey = made.secretKey
                expectRefusal("ADMIN_RESTRICTED_OPERATION") {
                    let _: AccountsSignUpResponse = try app.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(
                            email: "bob@example.com", password: Secret("secret1"), endUserIP: address))
                }
                let listed: TenantsListDenialsResponse = try admin.call(
                    "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
                #expect(listed.denials.first?.endUserIP == kept)
                #expect(listed.denials.first?.apiKeyID == made.apiKey?.apiKeyID)
            }
        }
    }

    @Test func refusalsAreFollowedLive() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.set(client, signup: true, deletion: false)
            let watcher = try server.connect()
            try watcher.send(
                watcher.request(
                    "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: 0),
                    stream: watcher.nextStream(), kind: .remoteClosed))
            // Any answer on the same connection proves that the watch before it has begun.
            _ = try client.call("postern.v1.Tenants/Get", TenantsGetRequest(), returning: TenantsGetResponse.self)
            var quoted: [String] = []
            for index in 0..<3 {
                let failure = #expect(throws: Failure.self) {
                    try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: Text("new\(index)@example.com"), password: Secret("secret1")),
                        returning: AccountsSignUpResponse.self)
                }
                quoted.append(failure?.metadata.first { $0.key == "decision_id" }?.value ?? "")
            }
            // The watch may have begun behind the first refusals: it shows a suffix of them, ending with the last.
            var seen: [String] = []
            while seen.last != quoted.last {
                let frame = try watcher.readFrame()
                let message = try TenantsWatchDenialsResponse(decoding: frame.payload)
                seen.append(message.denial?.decisionID.string ?? "")
            }
            #expect(quoted.suffix(seen.count) == seen[...])
        }
    }

    @Test func aWatchBehindASequenceThatCannotBeIsRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            // There is no refusal yet.
            for sequence in [Int64.max, .min, -2, 1] {
                try client.send(
                    client.request(
                        "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: sequence),
                        stream: client.nextStream(), kind: .remoteClosed))
                let frame = try client.readFrame()
                expectRefusal("INVALID_SEQUENCE") {
                    let _: TenantsWatchDenialsResponse = try RawClient.response(frame)
                }
            }
        }
    }

    @Test func aFloodOfRefusalsIsCountedAndNotWrittenOneByOne() async throws {
        try await withServer(configure: { $0.limits.denialsRecordedPerSecond = 5 }) { server in
            let client = try server.connect()
            try Self.set(client, signup: true, deletion: false)
            for index in 0..<25 {
                #expect(throws: Failure.self) {
                    try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: Text("flood\(index)@example.com"), password: Secret("secret1")),
                        returning: AccountsSignUpResponse.self)
                }
            }
            // The flush comes a second later: the watch waits for it.
            let stream = client.nextStream()
            try client.send(
                client.request(
                    "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: 5), stream: stream,
                    kind: .remoteClosed))
            let message = try TenantsWatchDenialsResponse(decoding: try client.readFrame().payload)
            #expect(message.denial?.suppressedCount == 20)
        }
    }
}

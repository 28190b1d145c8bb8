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
    private enum Action {
        case enterAsNewcomer(SignInWay), enterAgain(SignInWay)
        case signIn, signInWithCustomToken, lookup, update, refresh, delete
        case adminCreate, adminGet, adminUpdate, adminClaims, adminRevoke, adminDelete

        static let all: [Action] =
            SignInWay.all.map { .enterAsNewcomer($0) } + SignInWay.returning.map { .enterAgain($0) } + [
                .signIn, .signInWithCustomToken, .lookup, .update, .refresh, .delete, .adminCreate, .adminGet,
                .adminUpdate, .adminClaims,
                .adminRevoke, .adminDelete,
            ]

        var toggle: Toggle? {
            switch self {
            case .enterAsNewcomer: .disabledUserSignup
            case .delete: .disabledUserDeletion
            default: nil
            }
        }

        /// What the action is answered; empty: it is done.
        func answer(_ row: Row) -> String {
            switch self {
            case .enterAsNewcomer(let way): way.answerToNewcomer(isSignUpOff: row.disabledSignup)
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
                // The account comes into being before the toggles are set: they never touch those that exist.
                try Self.set(client, signup: false, deletion: false)
                let subject = try Self.makeSubject(client, row.account)
                // Who has no password cannot sign in with one.
                if case .signIn = action, subject.email.isEmpty { continue }
                if case .enterAgain(let way) = action { try way.makeKnown(identity, subject.name) }
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
            for sequence in [Int64.max, .min, -2] {
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

    // MARK: What the table does

    private struct Subject {
        /// Of nobody so far.
        let name = Text(RandomSource.system.alphanumeric(12).string.lowercased())
        var uid: Text
        var email: Text
        var tokens: TokenPair?
    }

    private static func set(_ client: RawClient, signup: Bool, deletion: Bool) throws {
        var request = TenantsUpdateRequest(tenant: Messages.Tenant())
        request.tenant?.client = ClientConfig(
            permissions: ClientPermissions(disabledUserSignup: signup, disabledUserDeletion: deletion))
        request.updateMask = ProtobufFieldMask(
            paths: ["client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion"])
        _ = try client.call("postern.v1.Tenants/Update", request, returning: TenantsUpdateResponse.self)
    }

    private static func uniqueEmail() -> Text {
        Text("user-\(RandomSource.system.alphanumeric(12))@example.com")
    }

    private static func makeSubject(_ client: RawClient, _ account: Account) throws -> Subject {
        let email = uniqueEmail()
        switch account {
        case .anonymous:
            let response = try client.call(
                "postern.v1.Accounts/SignUp", AccountsSignUpRequest(), returning: AccountsSignUpResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: .empty, tokens: response.tokens)
        case .password:
            let response = try client.call(
                "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: email, password: Secret("secret1")),
                returning: AccountsSignUpResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: email, tokens: response.tokens)
        case .madeByAdmin:
            let response = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: email, password: Secret("secret1")),
                returning: UsersCreateResponse.self)
            let signedIn = try client.call(
                "postern.v1.Accounts/SignInWithPassword",
                AccountsSignInWithPasswordRequest(email: email, password: Secret("secret1")),
                returning: AccountsSignInWithPasswordResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: email, tokens: signedIn.tokens)
        }
    }

    private static func perform(_ action: Action, _ identity: IdentityClient, _ subject: Subject) throws {
        let client = identity.client
        let idToken = subject.tokens?.idToken ?? .empty
        switch action {
        case .enterAsNewcomer(let way), .enterAgain(let way): try way.enter(identity, subject.name)
        case .signIn: _ = try identity.signIn(subject.email, password: "secret1")
        case .signInWithCustomToken: _ = try identity.signIn(customTokenFor: subject.uid)
        case .lookup:
            let request = AccountsLookupRequest(idToken: idToken)
            _ = try client.call("postern.v1.Accounts/Lookup", request, returning: AccountsLookupResponse.self)
        case .update:
            var request = AccountsUpdateRequest(idToken: idToken, displayName: "New")
            request.updateMask = ProtobufFieldMask(paths: ["display_name"])
            _ = try client.call("postern.v1.Accounts/Update", request, returning: AccountsUpdateResponse.self)
        case .refresh:
            let request = TokensRefreshRequest(refreshToken: subject.tokens?.refreshToken ?? .empty)
            _ = try client.call("postern.v1.Tokens/Refresh", request, returning: TokensRefreshResponse.self)
        case .delete:
            let request = AccountsDeleteRequest(idToken: idToken)
            _ = try client.call("postern.v1.Accounts/Delete", request, returning: AccountsDeleteResponse.self)
        case .adminCreate:
            let request = UsersCreateRequest(email: uniqueEmail())
            _ = try client.call("postern.v1.Users/Create", request, returning: UsersCreateResponse.self)
        case .adminGet:
            let request = UsersGetRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/Get", request, returning: UsersGetResponse.self)
        case .adminUpdate:
            var request = UsersUpdateRequest(uid: subject.uid, displayName: "New")
            request.updateMask = ProtobufFieldMask(paths: ["display_name"])
            _ = try client.call("postern.v1.Users/Update", request, returning: UsersUpdateResponse.self)
        case .adminClaims:
            let request = UsersSetCustomClaimsRequest(uid: subject.uid, customClaimsJSON: [UInt8]("{\"a\":1}".utf8))
            _ = try client.call(
                "postern.v1.Users/SetCustomClaims", request, returning: UsersSetCustomClaimsResponse.self)
        case .adminRevoke:
            let request = UsersRevokeTokensRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/RevokeTokens", request, returning: UsersRevokeTokensResponse.self)
        case .adminDelete:
            let request = UsersDeleteRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/Delete", request, returning: UsersDeleteResponse.self)
        }
    }

    private static func expectRestricted(_ failure: Failure, _ toggle: Toggle) {
        #expect(failure.code == .permissionDenied)
        #expect(failure.reason == "ADMIN_RESTRICTED_OPERATION")
        let metadata = Dictionary(uniqueKeysWithValues: failure.metadata.map { ($0.key, $0.value) })
        let expected = toggle == .disabledUserDeletion ? "deletion" : "signup"
        #expect(metadata["toggle"] == "client.permissions.disabled_user_\(expected)")
        #expect(metadata["web_code"] == "auth/admin-restricted-operation")
        #expect(metadata["mobile_code"] == "ERROR_ADMIN_RESTRICTED_OPERATION")
        #expect(metadata["required_role"] == "tenant-admin")
        #expect(metadata["tenant"]?.isEmpty == true)
        #expect(metadata["operation"]?.hasPrefix("postern.v1.Accounts/") == true)
        #expect(metadata["decision_id"]?.isEmpty == false)
    }
}

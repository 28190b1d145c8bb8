import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// What holds for every way to sign in, one row for each registered method. A new method has rows here as soon as it
/// has a driver.
@Suite struct SignInTableTests {
    @Test func everyMethodHasADriverAndItsOwnName() {
        for name in SignInMethodName.allCases {
            #expect(name.method is any SignInDriver.Type, "\(name) has no SignInDriver")
            #expect(name.method.name == name)
        }
    }

    @Test(arguments: SignInWay.all, [false, true])
    func nobodyComesIntoBeingWhereTheToggleSaysSo(_ way: SignInWay, _ isOff: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try Self.setSignUp(client, off: isOff)
            let answer = failure { try way.signIn(client, "new") }.reason
            #expect(answer == way.answerToNewcomer(isSignUpOff: isOff))
            #expect(try Self.users(client).count == (answer.isEmpty ? 1 : 0))
            let denials: TenantsListDenialsResponse = try client.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(denials.denials.count == (answer == "ADMIN_RESTRICTED_OPERATION" ? 1 : 0))
        }
    }

    @Test(arguments: SignInWay.all)
    func whoIsThereAlreadyIsNotTouched(_ way: SignInWay) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try way.makeKnown(client, "old")
            try Self.setSignUp(client, off: true)
            let again = failure { try way.signIn(client, "old") }
            // To sign up again would make a new user.
            #expect(again.reason == (way.isSignUp ? "ADMIN_RESTRICTED_OPERATION" : ""))
            #expect(try Self.users(client).count == 1)
        }
    }

    @Test(arguments: SignInWay.returning)
    func aDisabledUserIsNeitherEnteredNorChanged(_ way: SignInWay) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try way.makeKnown(client, "old")
            let uid = try #require(try Self.users(client).first?.uid)
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            let before = try client.get(uid)
            server.clock.advance(by: .seconds(1))
            expectRefusal("USER_DISABLED") { try way.signIn(client, "old") }
            #expect(try client.get(uid) == before)
            #expect(try Self.users(client).count == 1)
        }
    }

    /// A caller without a right credential learns nothing of the account: the answer and the hashes are the same as
    /// for an address that nobody has.
    @Test(arguments: SignInWay.all)
    func aWrongCredentialTellsNothingOfAccounts(_ way: SignInWay) async throws {
        try await withServer(configure: { $0.limits.guessesKeptPerSecond = 0 }) { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try way.makeKnown(client, "known")
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(email: "disabled@example.com", password: Secret([UInt8]("correct horse".utf8))))
            let disabled = try #require(
                try Self.users(client).first { $0.email == "disabled@example.com" }?.uid)
            try client.update(disabled, ["disabled"]) { $0.disabled = true }
            let expected = try Self.trace(of: way, "unknown", client)
            #expect(expected.writes <= TestEngine.questionWrites && expected.userCount == 2)
            for name in ["known", "disabled"] as [Text] {
                #expect(try Self.trace(of: way, name, client) == expected, "\(name)")
            }
        }
    }

    /// What can be seen of an attempt with a wrong credential.
    private struct Trace: Equatable {
        var reason: String
        var message: String
        var metadata: [String]
        var hashes: [UInt64]
        var writes: UInt64
        var userCount: Int
    }

    private static func trace(of way: SignInWay, _ name: Text, _ client: IdentityClient) throws -> Trace {
        let project = client.server.project
        let (hashes, writes) = (project.passwords.computed.all, try project.store.statistics().writes)
        let refused = failure { try way.driver.signInWrongly(client, name) }
        return Trace(
            reason: refused.reason, message: refused.message,
            metadata: refused.metadata.map { "\($0.key)=\($0.value)" },
            hashes: zip(hashes, project.passwords.computed.all).map { $1.count - $0.count },
            writes: try project.store.statistics().writes - writes, userCount: try users(client).count)
    }

    private static func users(_ client: IdentityClient) throws -> [User] {
        let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
        return listed.users
    }

    private static func setSignUp(_ client: IdentityClient, off: Bool) throws {
        try client.setTenant(["client.permissions.disabled_user_signup"]) {
            $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: off))
        }
    }
}

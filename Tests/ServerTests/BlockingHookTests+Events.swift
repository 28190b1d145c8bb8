import Base
import Messages
import TestSupport
import Testing

/// The events of what a hook changes in an account.
extension BlockingHookTests {
    private static let changes: Text = "by hook: email_verified,custom_claims"
    private static let changing = #"{"allow":true,"email_verified":true,"custom_claims":{"role":"boss"}}"#

    /// The details of the user's events about what hooks changed, the oldest first.
    private static func changesByHook(_ client: IdentityClient, _ uid: Text) throws -> [Text] {
        let page: AuditListEventsResponse = try client.client.call(
            "postern.v1.Audit/ListEvents",
            AuditListEventsRequest(
                pageSize: 1_000, filter: EventFilter(uid: uid, kinds: [.userUpdated]), oldestFirst: true))
        return page.events.map(\.detail).filter { $0.string.hasPrefix("by hook") }
    }

    @Test func `What a hook changes at a sign-in is an event, once`() async throws {
        try await Self.run { scene in
            let client = scene.identity
            let uid = try #require(try client.signUp("ann@example.com").user?.uid)
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", Self.changing)
            let signInCount = try Self.eventCount(client, uid, .signedIn)
            for _ in 0..<2 { _ = try client.signIn("ann@example.com") }
            #expect(try Self.changesByHook(client, uid) == [Self.changes])
            #expect(try Self.eventCount(client, uid, .signedIn) == signInCount + 2)
            // Only what differs is named, and nothing of its value.
            scene.script.set(
                "before_sign_in",
                #"{"allow":true,"email_verified":true,"display_name":"By hook","photo_url":"https://a.example/p"}"#)
            _ = try client.signIn("ann@example.com")
            #expect(try Self.changesByHook(client, uid) == [Self.changes, "by hook: display_name,photo_url"])
        }
    }

    @Test func `What a hook changes in a new account is an event`() async throws {
        try await Self.run { scene in
            let client = scene.identity
            try scene.update(["before_create"])
            scene.script.set("before_create", #"{"allow":true,"custom_claims":{"role":"boss"}}"#)
            let ann = try #require(try client.signUp("ann@example.com").user?.uid)
            #expect(try Self.changesByHook(client, ann) == ["by hook: custom_claims"])
            let ada = try #require(try client.signIn(.google()).user?.uid)
            #expect(try Self.changesByHook(client, ada) == ["by hook: custom_claims"])
            // A user who has to enroll a factor first, and one whom the hook disables as well.
            try client.setFactors(.mandatory)
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") { _ = try client.signUp("bob@example.com") }
            let bob = try client.find("bob@example.com").uid
            #expect(try Self.changesByHook(client, bob) == ["by hook: custom_claims"])
            try client.setFactors(.disabled)
            scene.script.set("before_create", #"{"allow":true,"disabled":true,"display_name":"By hook"}"#)
            expectRefusal("USER_DISABLED") { _ = try client.signUp("eve@example.com") }
            let eve = try client.find("eve@example.com").uid
            #expect(try Self.changesByHook(client, eve) == ["by hook: display_name"])
            #expect(try Self.eventCount(client, eve, .userUpdated, Self.disabledByHook) == 1)
        }
    }

    @Test func `What a hook changes in an account that a password reset makes is an event`() async throws {
        try await Self.run { scene in
            let (_, code) = try Self.mallorysCode(scene.identity)
            try scene.update(["before_create"])
            scene.script.set("before_create", #"{"allow":true,"display_name":"By hook"}"#)
            _ = try scene.identity.resetPassword(code, "another horse")
            let made = try scene.identity.find("mallory@evil.example").uid
            #expect(try Self.changesByHook(scene.identity, made) == ["by hook: display_name"])
        }
    }

    @Test func `What a hook changes is an event when the second factor is shown, not before`() async throws {
        try await Self.run { scene in
            let client = scene.identity
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", #"{"allow":true,"custom_claims":{"role":"boss"}}"#)
            let pending = try client.pending(user)
            #expect(try Self.changesByHook(client, user.uid).isEmpty)
            _ = try client.finish(pending, user)
            #expect(try Self.changesByHook(client, user.uid) == ["by hook: custom_claims"])
        }
    }

    @Test func `What a hook changes before a user enrolls a first factor is an event`() async throws {
        try await Self.run { scene in
            let client = scene.identity
            let uid = try #require(try client.signUp("ann@example.com").user?.uid)
            try client.setFactors(.mandatory)
            try scene.update(["before_sign_in"])
            scene.script.set("before_sign_in", Self.changing)
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") { _ = try client.signIn("ann@example.com") }
            #expect(try Self.changesByHook(client, uid) == [Self.changes])
        }
    }
}

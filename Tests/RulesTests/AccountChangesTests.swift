import Base
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct ProfileChangeTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    @Test func onlyWhatIsGivenChanges() throws {
        let before = account(email: "a@b.c", passwordHash: "h1")
        var changed = before
        try ProfileChange().apply(to: &changed, now: now)
        #expect(changed == before)
        try ProfileChange(displayName: "New", photoURL: "https://p").apply(to: &changed, now: now)
        #expect(changed.user.displayName == "New" && changed.user.photoURL == "https://p")
        #expect(changed.passwordHash == "h1" && changed.passwordUpdatedAt == before.passwordUpdatedAt)
        try ProfileChange(displayName: "").apply(to: &changed, now: now)
        #expect(changed.user.displayName.isEmpty)
    }

    @Test func aNewPasswordIsDated() throws {
        var changed = account(email: "a@b.c")
        try ProfileChange(newPasswordHash: "h2").apply(to: &changed, now: now)
        #expect(changed.passwordHash == "h2" && changed.passwordUpdatedAt == now)
        #expect(changed.user.providers.map(\.providerID) == ["password"])
    }

    @Test func withoutAnEmailThereIsNoPassword() {
        var changed = account(phoneNumber: "+14155550123")
        #expect(
            reason { try ProfileChange(newPasswordHash: "h").apply(to: &changed, now: now) } == "OPERATION_NOT_ALLOWED")
        #expect(changed.passwordHash.isEmpty)
    }
}

@Suite struct AdminChangeTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func apply(
        to account: inout Account, _ configure: (inout AdminChange) -> Void
    ) throws -> AdminChange.Effect {
        var change = AdminChange()
        configure(&change)
        return try change.apply(to: &account, now: now)
    }

    @Test func anEmptyChangeChangesNothingAndEndsNothing() throws {
        let before = account(email: "a@b.c", passwordHash: "h")
        var changed = before
        let effect = try apply(to: &changed) { _ in }
        #expect(changed == before)
        #expect(effect.end == nil && effect.kind == .userUpdated && effect.detail.isEmpty)
    }

    @Test func everyFieldIsSetAndNamed() throws {
        var changed = account(email: "a@b.c")
        let effect = try apply(to: &changed) { change in
            change.email = Email(stored: "New@b.c")
            change.emailVerified = true
            change.displayName = "n"
            change.photoURL = "https://p"
            change.phoneNumber = "+14155550123"
            change.disabled = false
            change.customClaims = utf8("{}")
        }
        #expect(changed.user.email == "New@b.c" && changed.user.emailVerified)
        #expect(changed.user.displayName == "n" && changed.user.photoURL == "https://p")
        #expect(changed.user.phoneNumber == "+14155550123" && changed.user.customClaimsJSON == utf8("{}"))
        #expect(
            effect.detail == "email,email_verified,display_name,photo_url,phone_number,disabled,custom_claims")
        #expect(changed.user.providers.map(\.providerID) == ["phone"])
    }

    @Test func aNewEmailIsUnverifiedUnlessTheAdminSaysSo() throws {
        for (address, isVerified) in [("x@b.c", false), ("A@B.C", true), ("a@b.c", true)] {
            var changed = account(email: "a@b.c") { $0.emailVerified = true }
            _ = try apply(to: &changed) { $0.email = Email(stored: Text(address)) }
            #expect(changed.user.emailVerified == isVerified, "\(address)")
        }
        var changed = account(email: "a@b.c") { $0.emailVerified = true }
        _ = try apply(to: &changed) { $0.email = .some(nil) }
        #expect(changed.user.email.isEmpty && !changed.user.emailVerified)
        _ = try apply(to: &changed) { $0.emailVerified = true }
        #expect(!changed.user.emailVerified, "nothing can be verified about no email")
    }

    @Test func anAdminAnswersForAnEmailUntilItIsProvedOrTheUserMovesOn() throws {
        var changed = account(email: "a@b.c") { $0.emailVerified = true }
        _ = try apply(to: &changed) { $0.displayName = "n" }
        #expect(!changed.isEmailSetByAdmin)
        for email in ["x@b.c", "X@b.c"] as [Text] {
            _ = try apply(to: &changed) { $0.email = Email(stored: email) }
            #expect(changed.isEmailSetByAdmin)
        }
        #expect(try Account(changed.record) == changed)
        var move = ProfileChange()
        move.newEmail = Email(stored: "victim@b.c")
        try move.apply(to: &changed, now: now)
        #expect(!changed.isEmailSetByAdmin)
        _ = try apply(to: &changed) { $0.email = Email(stored: "victim@b.c") }
        #expect(!changed.isEmailSetByAdmin, "written again as it was")
        for isVerified in [true, false] {
            _ = try apply(to: &changed) { $0.emailVerified = isVerified }
            #expect(changed.isEmailSetByAdmin == !isVerified)
        }
        changed.giveUpEmail(for: "typed@b.c", isVerified: false)
        #expect(!changed.isEmailSetByAdmin, "a former email")
    }

    @Test func whatEndsSessionsAndWhatDoesNot() throws {
        let cases: [(name: String, change: (inout AdminChange) -> Void, end: SessionEnd?, kind: EventKind)] = [
            ("name", { $0.displayName = "n" }, nil, .userUpdated),
            ("claims", { $0.customClaims = [] }, nil, .userUpdated),
            ("phone", { $0.phoneNumber = "+14155550123" }, nil, .userUpdated),
            ("same email, other case", { $0.email = Email(stored: "A@B.c") }, nil, .userUpdated),
            ("enable", { $0.disabled = false }, nil, .userUpdated),
            ("email", { $0.email = Email(stored: "x@b.c") }, .admin, .userUpdated),
            ("no email", { $0.email = .some(nil) }, .admin, .userUpdated),
            ("disable", { $0.disabled = true }, .admin, .userUpdated),
            ("revoke", { $0.revokesTokens = true }, .admin, .tokensRevoked),
            ("password", { $0.passwordHash = "h2" }, .passwordChanged, .passwordChanged),
            ("no password", { $0.passwordHash = "" }, .passwordChanged, .passwordChanged),
        ]
        for (name, change, end, kind) in cases {
            var changed = account(email: "a@b.c", passwordHash: "h")
            let effect = try apply(to: &changed, change)
            #expect(effect.end == end && effect.kind == kind, "\(name)")
        }
    }

    @Test func `A change of everything is told by an event for each thing, and ends sessions once`() throws {
        var changed = account(email: "a@b.c", passwordHash: "h") {
            $0.providers.append(ProviderInfo(providerID: "google.com", rawID: "1"))
        }
        let effect = try apply(to: &changed) { change in
            change.email = Email(stored: "x@b.c")
            change.passwordHash = "h2"
            change.unlinkedProviderIDs = ["google.com"]
            change.linkedProviders = [ProviderInfo(providerID: "google.com", rawID: "2")]
            change.revokesTokens = true
        }
        #expect(changed.user.providers.map(\.rawID) == ["2", "x@b.c"])
        #expect(effect.end == .passwordChanged && effect.voidsCodes)
        #expect(effect.kind == .passwordChanged && effect.detail == "email,password")
        #expect(effect.others.map(\.kind) == [.providerUnlinked, .providerLinked, .tokensRevoked])
        let linking = try apply(to: &changed) {
            $0.linkedProviders = [ProviderInfo(providerID: "github.com", rawID: "3")]
        }
        #expect(linking.kind == .providerLinked && linking.detail == "github.com" && linking.others.isEmpty)
        #expect(linking.end == nil)
        let emailAndRevoke = try apply(to: &changed) {
            $0.email = Email(stored: "y@b.c")
            $0.revokesTokens = true
        }
        #expect(emailAndRevoke.voidsCodes && emailAndRevoke.end == .admin)
    }

    @Test func disablingWhoIsDisabledEndsNothing() throws {
        var changed = account { $0.disabled = true }
        #expect(try apply(to: &changed) { $0.disabled = true }.end == nil)
    }

    @Test func aPasswordIsDatedAndItsRemovalTakesTheProviderAway() throws {
        var changed = account(email: "a@b.c", passwordHash: "h")
        _ = try apply(to: &changed) { $0.passwordHash = "h2" }
        #expect(changed.passwordUpdatedAt == now && changed.user.providers.map(\.providerID) == ["password"])
        _ = try apply(to: &changed) { $0.passwordHash = "" }
        #expect(!changed.hasPassword && changed.user.providers.isEmpty)
    }
}

import Base
import Messages
import TestSupport
import Testing

@testable import Identity
@testable import Rules

@Suite struct AccountTests {
    @Test func anAccountComesBackFromItsRecord() throws {
        var before = Account(
            user: account("u", email: "a@b.c", phoneNumber: "+14155550123") { $0.customClaimsJSON = [1, 2] }.user,
            passwordHash: "h", passwordUpdatedAt: Timestamp(seconds: 9))
        before.signsInByCustomToken = true
        before.importedAt = Timestamp(seconds: 8)
        #expect(try Account(before.record) == before)
        let record = before.record.encoded()
        #expect(record.withUnsafeBytes { [UInt8](Account.encodedUser(in: $0)) } == before.user.encoded())
    }

    @Test func aRecordThatHoldsNoUserIsAnError() {
        #expect(throws: DecodeError.self) { try Account(StoredUser(user: [0xFF])) }
    }

    @Test func passwordAndPhoneFollowFromTheAccount() {
        func providers(_ email: Text, _ hash: Text, _ phone: Text) -> [Text] {
            account(email: email, phoneNumber: phone, passwordHash: hash).user.providers.map(\.providerID)
        }
        #expect(providers("", "", "") == [])
        #expect(providers("a@b.c", "", "") == [])
        #expect(providers("", "h", "") == [])
        #expect(providers("a@b.c", "h", "") == ["password"])
        #expect(providers("", "", "+14155550123") == ["phone"])
        #expect(providers("a@b.c", "h", "+14155550123") == ["password", "phone"])
    }

    @Test func derivedEntriesMirrorTheAccount() {
        let user = account(email: "A@b.c", phoneNumber: "+14155550123", passwordHash: "h") { user in
            user.displayName = "Ada"
            user.photoURL = "https://p"
        }.user
        #expect(
            user.providers == [
                ProviderInfo(
                    providerID: "password", rawID: "A@b.c", email: "A@b.c", displayName: "Ada", photoURL: "https://p"),
                ProviderInfo(providerID: "phone", rawID: "+14155550123", phoneNumber: "+14155550123"),
            ])
    }

    @Test func derivedEntriesNeverComeFromOutside() {
        let forged = [
            ProviderInfo(providerID: "password", rawID: "evil@b.c"), ProviderInfo(providerID: "phone", rawID: "1"),
            ProviderInfo(providerID: "google.com", rawID: "g1"),
        ]
        #expect(account(providers: forged).user.providers == [forged[2]])
    }

    @Test func derivingAgainChangesNothing() {
        var again = account(
            email: "a@b.c", phoneNumber: "+14155550123", passwordHash: "h",
            providers: [ProviderInfo(providerID: "google.com", rawID: "g1")])
        let once = again
        again.deriveProviders()
        #expect(again == once && once.user.providers.count == 3)
    }

    @Test func revokingNeverGoesBack() {
        var account = account()
        account.revokeTokens(.admin, now: Timestamp(microseconds: 100))
        #expect(account.user.tokensValidAfterMicros == 100)
        account.revokeTokens(.admin, now: Timestamp(microseconds: 100))
        #expect(account.user.tokensValidAfterMicros == 101)
        account.revokeTokens(.admin, now: Timestamp(microseconds: 5))
        #expect(account.user.tokensValidAfterMicros == 102)
        account.revokeTokens(.admin, now: Timestamp(microseconds: 1_000))
        #expect(account.user.tokensValidAfterMicros == 1_000)
    }
}

@Suite struct UserStatusTests {
    private func status(_ user: User) -> UserStatus? { user.encoded().withUnsafeBytes { UserStatus($0) } }

    @Test func itIsWhatTheWholeUserSays() throws {
        for disabled in [false, true] {
            for validAfter in [Int64.min, -1, 0, 1, 1_800_000_000_000_000, .max] {
                let user = account("u", email: "a@b.c", phoneNumber: "+14155550123", passwordHash: "h") { user in
                    user.disabled = disabled
                    user.tokensValidAfterMicros = validAfter
                    user.customClaimsJSON = utf8(#"{"disabled":true}"#)
                }.user
                let status = try #require(self.status(user))
                #expect(status.isDisabled == disabled && status.tokensValidAfterMicros == validAfter)
            }
        }
    }

    @Test func whatIsNoMessageHasNoStatus() {
        for bytes: [UInt8] in [[0xFF], [0x40], [0x42, 0x7F, 0x00], [0x00]] {
            #expect(bytes.withUnsafeBytes { UserStatus($0) } == nil)
        }
    }
}

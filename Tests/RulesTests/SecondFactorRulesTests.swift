import Base
import Crypto
import JSON
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct SecondFactorRulesTests {
    private func settings(
        _ state: SecondFactorState, _ kinds: [SecondFactorKind] = []
    ) -> TenantSettings {
        var tenant = TenantSettings.defaults(tenantID: "acme", now: .zero)
        tenant.secondFactorState = state
        tenant.allowedSecondFactors = kinds
        return TenantSettings(StoredTenant(tenant: tenant))
    }

    private func user(_ factors: [SecondFactor] = [], verified: Bool = true) -> User {
        var user = User(tenantID: "acme", uid: "ada", email: "ada@example.com")
        user.emailVerified = verified
        user.secondFactors = factors
        return user
    }

    private static let phone = SecondFactor(factorID: "p", kind: .phone, phoneNumber: "+14155550123")
    private static let app = SecondFactor(factorID: "t", kind: .totp, displayName: "my \"app\"")

    @Test func whatASignInNeeds() {
        let (none, some) = (user(), user([Self.app]))
        for state in [SecondFactorState.unspecified, .disabled] {
            #expect(SecondFactorRules.need(of: none, settings: settings(state)) == .nothing)
            #expect(SecondFactorRules.need(of: some, settings: settings(state)) == .nothing)
        }
        #expect(SecondFactorRules.need(of: none, settings: settings(.enabled)) == .nothing)
        #expect(SecondFactorRules.need(of: some, settings: settings(.enabled)) == .factor)
        #expect(SecondFactorRules.need(of: none, settings: settings(.mandatory)) == .enrollment)
        #expect(SecondFactorRules.need(of: some, settings: settings(.mandatory)) == .factor)
        // A factor whose kind may not be enrolled any more is still asked for.
        #expect(SecondFactorRules.need(of: some, settings: settings(.enabled, [.phone])) == .factor)
    }

    @Test func whoMayEnrollWhat() {
        #expect(reason { try SecondFactorRules.checkOpen(settings(.disabled)) } == "SECOND_FACTORS_NOT_ALLOWED")
        #expect(reason { try SecondFactorRules.checkOpen(settings(.mandatory)) } == nil)
        #expect(
            reason { try SecondFactorRules.checkAllowed(.totp, settings: settings(.enabled, [.phone])) }
                == "SECOND_FACTORS_NOT_ALLOWED")
        #expect(reason { try SecondFactorRules.checkAllowed(.totp, settings: settings(.enabled)) } == nil)
        #expect(reason { try SecondFactorRules.checkRoom(user(verified: false)) } == "UNVERIFIED_EMAIL")
        let four = [SecondFactor](repeating: Self.app, count: 4)
        #expect(reason { try SecondFactorRules.checkRoom(user(four)) } == nil)
        #expect(
            reason { try SecondFactorRules.checkRoom(user(four + [Self.app])) } == "SECOND_FACTOR_LIMIT_EXCEEDED")
        let limits = Limits()
        #expect(
            reason { try SecondFactorRules.checkDisplayName(Text(String(repeating: "a", count: 64)), limits: limits) }
                == nil)
        #expect(
            reason { try SecondFactorRules.checkDisplayName(Text(String(repeating: "a", count: 65)), limits: limits) }
                == "INVALID_DISPLAY_NAME")
    }

    @Test func hintsTellTheLastFourDigitsOnly() throws {
        let hints = SecondFactorRules.hints([Self.phone, Self.app])
        #expect(
            hints == """
                [{"factorId":"p","kind":"phone","displayName":"","phoneNumber":"+*******0123","enrolledAtMicros":0},\
                {"factorId":"t","kind":"totp","displayName":"my \\"app\\"","phoneNumber":"","enrolledAtMicros":0}]
                """)
        _ = try JSONValue(parsing: hints.bytes)
        #expect(SecondFactorRules.redacted("123") == "123")
    }

    @Test func thePhoneOfTheFirstFactorIsNoSecondOne() {
        var user = user([Self.phone, Self.app])
        func offered(_ provider: Text) -> [Text] {
            SecondFactorRules.offered(to: user, after: provider).map(\.factorID)
        }
        #expect(offered("phone") == ["p", "t"])
        user.phoneNumber = Self.phone.phoneNumber
        #expect(offered("phone") == ["t"] && offered("password") == ["p", "t"])
    }

    @Test(arguments: [nil, 7] as [UInt64?])
    func theFirstFactorLeavesItsOwnAddressAndLaterOnesLeaveAll(_ address: UInt64?) {
        var account = Account(user: user())
        account.knownAddresses.remember(1)
        account.add(Self.phone, from: address)
        var known = address.map { [$0] } ?? []
        #expect(account.knownAddresses.all == known)
        account.knownAddresses.remember(2)
        known.append(2)
        account.add(Self.app, from: 9)
        #expect(account.knownAddresses.all == known && account.user.secondFactors == [Self.phone, Self.app])
    }

    @Test func aRecoveryCodeHasOneForm() throws {
        let codes = RecoveryCodes.make(.system)
        #expect(codes.count == 10 && Set(codes.compactMap(RecoveryCodes.canonical)).count == 10)
        for code in codes {
            let canonical = try #require(RecoveryCodes.canonical(code))
            #expect(canonical.count == 10)
            let typed = String(decoding: canonical, as: UTF8.self).lowercased()
            #expect(RecoveryCodes.canonical(Secret(" \(typed.prefix(3))-\(typed.dropFirst(3)) ")) == canonical)
        }
        for wrong in [
            "", "k3vq2-7mzd", "k3vq2-7mzdp-a", "k3vq2-7mzd0", "k3vq2-7mzdé", String(repeating: " ", count: 65),
        ] {
            #expect(RecoveryCodes.canonical(Secret(wrong)) == nil)
        }
    }
}

import Base
import Messages
import Testing

@testable import Rules

/// Which keys an administrator makes and renews: every maker with every key.
@Suite struct KeyRightsTests {
    private static let roles: [Role] = [.verifier, .app, .tenantAdmin, .projectAdmin]
    private static let scopes: [Scope.Tenants] = [.all(true), .tenantID(""), .tenantID("acme"), .tenantID("beta")]
    private static let limits = QuotaLimits(limits: Limits(), mapByteCount: 1 << 30)

    /// A quota, which is set alone.
    private enum Kind: CaseIterable {
        case mutations, bytes, sms

        func set(_ value: Int64) -> CallerQuotas {
            switch self {
            case .mutations: CallerQuotas(mutationsPerSecond: value)
            case .bytes: CallerQuotas(writtenBytesPerHour: value)
            case .sms: CallerQuotas(smsPerHour: value)
            }
        }

        var defaults: (app: Int64, admin: Int64) {
            switch self {
            case .mutations: (500, 2_000)
            case .bytes: (1 << 30, 8 << 30)
            case .sms: (1_000, 1_000)
            }
        }
    }

    private static func key(
        _ role: Role, _ tenants: Scope.Tenants?, _ quotas: CallerQuotas? = nil
    ) -> ApiKey {
        ApiKey(apiKeyID: "k", role: role, scope: Scope(tenants: tenants), quotas: quotas)
    }

    /// Only a project-admin makes keys for all tenants.
    @Test func everyMakerMakesKeysWithinItsRights() {
        for makerScope in Self.scopes {
            for makerRole in [Role.tenantAdmin, .projectAdmin] {
                let maker = Caller(Self.key(makerRole, makerScope))
                for role in Self.roles {
                    for scope in Self.scopes.map(Optional.some) + [nil] {
                        let isOneTenant = scope != nil && scope != .all(true)
                        let isWithin = makerScope == .all(true) || makerScope == scope
                        let isAllowed =
                            makerRole == .projectAdmin || role != .projectAdmin && isOneTenant && isWithin
                        let found = reason { try maker.checkMayMake(Self.key(role, scope)) }
                        let expected = isAllowed ? nil : "INSUFFICIENT_PERMISSION"
                        #expect(found == expected, "\(makerRole) \(makerScope) \(role) \(String(describing: scope))")
                    }
                }
            }
        }
    }

    /// A new secret, a later end and other networks of a key: an admin of all tenants renews keys for all tenants too.
    @Test func aKeyOfAllTenantsIsRenewedByAnAdminOfAllTenants() {
        let admin = Caller(Self.key(.tenantAdmin, .all(true)))
        for role in Self.roles {
            for scope in Self.scopes {
                let found = reason { try admin.checkMayRenew(Self.key(role, scope), limits: Self.limits) }
                #expect(found == (role == .projectAdmin ? "INSUFFICIENT_PERMISSION" : nil), "\(role) \(scope)")
            }
        }
    }

    @Test func noKeyWithHigherQuotasIsRenewed() {
        for kind in Kind.allCases {
            let (app, standard) = kind.defaults
            let values = [0, 1, 3, app - 1, app, app + 1, standard, standard + 1]
            for own in values {
                let admin = Caller(Self.key(.tenantAdmin, .tenantID("acme"), kind.set(own)))
                let ownLimit = own == 0 ? standard : own
                for other in values {
                    let key = Self.key(.app, .tenantID("acme"), kind.set(other))
                    let isAbove = (other == 0 ? app : other) > ownLimit
                    let found = reason { try admin.checkMayRenew(key, limits: Self.limits) }
                    #expect(found == (isAbove ? "INSUFFICIENT_PERMISSION" : nil), "\(kind) \(own) \(other)")
                    let setting = reason { try admin.checkMayRenew(key, setsQuotas: true, limits: Self.limits) }
                    #expect(setting == "INSUFFICIENT_PERMISSION")
                }
            }
            let project = Caller(Self.key(.projectAdmin, .all(true)))
            let raised = Self.key(.app, .tenantID("acme"), kind.set(1 << 40))
            let found = reason { try project.checkMayRenew(raised, setsQuotas: true, limits: Self.limits) }
            #expect(found == nil)
        }
    }

    /// The end and the networks of a key with higher quotas, before and after a change by a tenant's admin.
    @Test func aKeyWithHigherQuotasIsOnlyRestricted() {
        typealias Use = (end: Int64, networks: [Text])
        let cases: [(before: Use, after: Use, isAllowed: Bool)] = [
            ((0, []), (0, []), true), ((0, []), (9, []), true), ((9, []), (8, []), true), ((9, []), (9, []), true),
            ((9, []), (10, []), false), ((9, []), (0, []), false),
            ((0, []), (0, ["10.0.0.0/8"]), true), ((0, ["10.0.0.0/8"]), (0, []), false),
            ((0, ["10.0.0.0/8"]), (0, ["10.1.0.0/16", "10.2.0.1"]), true),
            ((0, ["10.0.0.0/8"]), (0, ["10.1.0.0/16", "11.0.0.1"]), false),
            ((0, ["10.0.0.0/8"]), (0, ["10.0.0.0/7"]), false), ((0, ["10.0.0.0/8"]), (0, ["2001:db8::/32"]), false),
            ((0, ["10.0.0.0/8", "2001:db8::/32"]), (0, ["2001:db8::1", "10.0.0.0/8"]), true),
            // Both at once: the one does not make up for the other.
            ((9, ["10.0.0.0/8"]), (8, ["10.0.0.1"]), true), ((9, ["10.0.0.0/8"]), (8, []), false),
            ((9, ["10.0.0.0/8"]), (10, ["10.0.0.1"]), false),
            // A network that cannot be read is within none.
            ((0, ["10.0.0.0/8"]), (0, ["x"]), false), ((0, ["x"]), (0, ["10.0.0.1"]), false),
            ((9, ["x"]), (8, ["x"]), true),
        ]
        let admin = Caller(Self.key(.tenantAdmin, .tenantID("acme"), CallerQuotas(mutationsPerSecond: 3)))
        for (number, (before, after, isAllowed)) in cases.enumerated() {
            var key = Self.key(.app, .tenantID("acme"))
            (key.expiresAtMicros, key.allowedAddresses) = before
            var changed = key
            (changed.expiresAtMicros, changed.allowedAddresses) = after
            changed.displayName = "shop"
            let found = reason {
                try admin.checkMayChange(key, to: changed, setsQuotas: false, limits: Self.limits)
            }
            #expect(found == (isAllowed ? nil : "INSUFFICIENT_PERMISSION"), "case \(number)")
            // Neither do quotas change with a restriction, nor anything else.
            let setting = reason {
                try admin.checkMayChange(key, to: changed, setsQuotas: true, limits: Self.limits)
            }
            #expect(setting == "INSUFFICIENT_PERMISSION", "case \(number)")
            changed.exportPasswordHashes = true
            let other = reason {
                try admin.checkMayChange(key, to: changed, setsQuotas: false, limits: Self.limits)
            }
            #expect(other == "INSUFFICIENT_PERMISSION", "case \(number)")
        }
    }

    /// The refusal of a right that the maker lacks says who can give it.
    @Test func `A right that is not the maker's to give is refused with who can give it`() {
        var key = Self.key(.app, .tenantID("acme"))
        key.trustedEndUserIP = true
        var admin = Self.key(.tenantAdmin, .tenantID("acme"))
        let lacking = failure { try Caller(admin).checkMayMake(key) }
        let words = "trusted_end_user_ip is not yours to give; a project-admin can, or a key that has it."
        #expect(lacking?.message == "A key may do no more than whoever makes it: \(words)")
        admin.trustedEndUserIP = true
        let having = failure { try Caller(admin).checkMayMake(key) }
        #expect(having == nil)
    }

    /// An operator may have given admins less than apps by default.
    @Test func defaultsAreNotCompared() {
        var small = Limits()
        small.mutationsPerAdminPerSecond = 5
        let limits = QuotaLimits(limits: small, mapByteCount: 1 << 30)
        let admin = Caller(Self.key(.tenantAdmin, .tenantID("acme")))
        let found = reason { try admin.checkMayRenew(Self.key(.app, .tenantID("acme")), limits: limits) }
        #expect(found == nil)
    }
}

import Base
import JSON
import Messages
import Testing

@testable import Federation
@testable import Rules

/// Which provider is trusted about which email: the whole table, for the defaults and for what an operator can
/// configure.
@Suite struct TrustTests {
    private static let consumers: JSONValue = "9188040d-6c67-4c5b-b112-36a304b66dad"

    private static let providers: [Text] = [
        "google.com", "apple.com", "microsoft.com", "yahoo.com", "facebook.com", "twitter.com", "github.com",
        "linkedin.com", "oidc.corp",
    ]
    private static let domains = [
        "gmail.com", "yahoo.com", "outlook.com", "hotmail.com", "example.com", "privaterelay.appleid.com",
    ]

    private func profile(_ email: Text, verified: JSONValue?, tid: JSONValue? = nil) throws -> ProviderProfile {
        var members: [JSONValue.Member] = [.init("sub", "s")]
        if !email.isEmpty { members.append(.init("email", .string(email))) }
        if let verified { members.append(.init("email_verified", verified)) }
        if let tid { members.append(.init("tid", tid)) }
        return try ProviderProfile(openID: .object(members))
    }

    private func policy(_ providerID: Text, _ trust: ProviderTrust? = nil) throws -> TrustPolicy {
        TrustPolicy(trust, known: try #require(KnownProvider(providerID)))
    }

    /// Of all providers × domains × claims, only these five lines of the table are trusted.
    @Test func theDefaultsAreTheTableAndNothingElse() throws {
        for providerID in Self.providers {
            for domain in Self.domains {
                for verified: JSONValue? in [nil, true, "true", false, "false", "TRUE", 1, .null] {
                    for tid: JSONValue? in [nil, Self.consumers, "72f988bf-86f1-41af-91ab-2d7cd011db47"] {
                        let isVerified = verified == true || verified == "true"
                        let isDenied = verified != nil && verified != .null && !isVerified
                        let expected: Bool =
                            switch (providerID.string, domain) {
                            case ("google.com", "gmail.com"), ("yahoo.com", "yahoo.com"): isVerified
                            case ("microsoft.com", "outlook.com"), ("microsoft.com", "hotmail.com"):
                                tid == Self.consumers && !isDenied
                            case ("apple.com", _): !isDenied
                            default: false
                            }
                        let profile = try profile(Text("ann@" + domain), verified: verified, tid: tid)
                        let isTrusted = try policy(providerID).isTrusted(profile)
                        #expect(
                            isTrusted == expected,
                            "\(providerID) \(domain) \(String(describing: verified)) \(String(describing: tid))")
                    }
                }
            }
        }
    }

    @Test func whatIsConfiguredReplacesTheDefault() throws {
        let verified = try profile("ann@corp.example", verified: true)
        let silent = try profile("ann@corp.example", verified: nil)
        let denied = try profile("ann@corp.example", verified: false)
        for providerID in Self.providers {
            let never = try policy(providerID, ProviderTrust(level: .never))
            #expect(![verified, silent, denied].contains(where: never.isTrusted), "\(providerID)")
            #expect(!never.isTrusted(try profile("ann@gmail.com", verified: true, tid: Self.consumers)))
            for level in [TrustLevel.always, .domains] {
                let trust = ProviderTrust(level: level, domains: ["corp.example"])
                let policy = try policy(providerID, trust)
                #expect(!policy.isTrusted(denied), "\(providerID)")
                // The known provider's claim still counts, unless another one is configured.
                #expect(policy.isTrusted(verified) == (providerID != "microsoft.com"), "\(providerID)")
                let needsWord = ["google.com", "yahoo.com", "microsoft.com"].contains(providerID)
                #expect(policy.isTrusted(silent) == !needsWord, "\(providerID)")
            }
        }
    }

    @Test func aRequiredClaimMustHaveItsValue() throws {
        let trust = ProviderTrust(level: .always, requiredClaim: RequiredClaim(name: "tid", value: "42"))
        let policy = try policy("microsoft.com", trust)
        for (tid, isTrusted) in [("42", true), (42, true), ("43", false), (nil, false), (["42"], false)]
            as [(JSONValue?, Bool)]
        {
            #expect(policy.isTrusted(try profile("ann@x.example", verified: nil, tid: tid)) == isTrusted)
        }
        let flag = ProviderTrust(level: .always, requiredClaim: RequiredClaim(name: "email_verified", value: "true"))
        let strict = try self.policy("oidc.corp", flag)
        #expect(strict.isTrusted(try profile("ann@x.example", verified: true)))
        #expect(!strict.isTrusted(try profile("ann@x.example", verified: nil)))
    }

    @Test(
        arguments: [
            ("ann@gmail.com", true), ("ann@GMAIL.com", true), ("a@b@gmail.com", true),
            ("ann@gmail.com.evil.example", false),
            ("ann@sub.gmail.com", false), ("ann@notgmail.com", false), ("ann@gmail.com ", false), ("gmail.com", false),
            ("@gmail.com", false), ("ann@", false), ("", false), ("ann@gmail.com\u{2063}", false),
            ("ann@gmaıl.com", false),
        ] as [(Text, Bool)])
    func theDomainIsComparedExactly(_ email: Text, _ isTrusted: Bool) throws {
        let profile = try profile(email, verified: true)
        #expect(try policy("google.com").isTrusted(profile) == isTrusted)
    }

    /// What is known of a provider holds only for that provider's own issuer and endpoints.
    @Test func aKnownProviderElsewhereIsNotTrustedUnlessConfigured() throws {
        var provider = Provider()
        provider.providerID = "google.com"
        func isTrusted() throws -> Bool {
            let configuration = ProviderConfiguration(
                tenantID: "t", provider: provider, hasClientSecret: false, openClientSecret: { .empty })
            return try #require(configuration).trust.isTrusted(try profile("ann@gmail.com", verified: true))
        }
        #expect(try isTrusted())
        provider.issuer = "https://accounts.evil.example"
        #expect(try !isTrusted())
        provider.issuer = .empty
        provider.endpoints = ProviderEndpoints(jwks: "https://evil.example/jwks")
        #expect(try !isTrusted())
        provider.trust = ProviderTrust(level: .domains, domains: ["gmail.com"])
        #expect(try isTrusted())
    }
}

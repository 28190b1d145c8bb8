import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Federation

/// Which of a provider's keys are used.
@Suite struct ProviderKeyUseTests {
    private static func keySet(_ jwk: JSONValue) -> ProviderKeySet? {
        ProviderKeySet(parsing: JSONValue.object([.init("keys", [jwk])]).serialized())
    }

    private static func jwk() -> JSONValue {
        let key = SigningKey.generate(.es256).publicKey
        return .object(key.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) })
    }

    /// Each token is compared with the ids and issuers on an event loop.
    @Test(
        arguments: [
            ("kid", 256, 1), ("kid", 257, 0), ("issuer", 2_048, 1), ("issuer", 2_049, 0), ("issuer", 250_000, 0),
        ] as [(Text, Int, Int)])
    func aKeyWithALongIdOrIssuerIsLeftOut(_ member: Text, _ byteCount: Int, _ count: Int) {
        let text = Text(String(repeating: "k", count: byteCount))
        #expect(Self.keySet(Self.jwk().with(member, .string(text)))?.count == count)
    }

    @Test(
        arguments: [
            ("https://a/{tenantid}/v2", "https://a/d/v2", true), ("https://a/{tenantid}/v2", "https://a/e/v2", false),
            ("https://a/{tenantid}/v2", "https://b/d/v2", false), ("https://a/{tenantid}/v2", "https://a/d/v3", false),
            ("https://a/{tenantid}/v2", "https://a/{tenantid}/v2", false), ("https://a/{tenantid}/v2", "", false),
            ("{tenantid}{tenantid}", "d{tenantid}", true), ("https://a", "https://a", true),
            ("https://a", "https://ad", false), ("https://a", "https://", false),
        ] as [(Text, Text, Bool)])
    func theIssuerOfAKeyMayNameADirectory(_ keyIssuer: Text, _ issuer: Text, _ matches: Bool) {
        #expect(ProviderKeyIssuer(keyIssuer).matches(issuer, directory: "d") == matches)
    }

    @Test(.timeLimit(.minutes(1))) func oneTenantWaits256TimesForACheckAtMost() async throws {
        let keys = try #require(Self.keySet(Self.jwk()))
        let gate = Promise<Void>()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<300 {
                group.addTask {
                    do {
                        try await keys.checkOnce([0], tenant: "a") {
                            try await gate.value()
                            _ = keys.check([0])
                        }
                        return false
                    } catch {
                        return error as? FederationError == .overloaded
                    }
                }
            }
            // One caller checks the key.
            for _ in 0..<43 {
                let isRefused = await group.next()
                #expect(isRefused == true)
            }
            gate.succeed(())
            for await isRefused in group { #expect(!isRefused) }
        }
        #expect(keys.keys([0]).count == 1)
    }

    @Test(.timeLimit(.minutes(1))) func oneTenantsCheckHoldsUpNoOther() async throws {
        let keys = try #require(Self.keySet(Self.jwk()))
        let (gate, begun) = (Promise<Void>(), Promise<Void>())
        let first = Task {
            try await keys.checkOnce([0], tenant: "a") {
                begun.succeed(())
                try await gate.value()
            }
        }
        try await begun.value()
        try await keys.checkOnce([0], tenant: "b") { _ = keys.check([0]) }
        #expect(keys.keys([0]).count == 1)
        gate.succeed(())
        try await first.value
    }

    /// RFC 7517 §4.2 and §4.3. 36 cases.
    @Test func onlyKeysForSignaturesAreUsed() {
        let key = Self.jwk()
        let uses: [JSONValue?] = [nil, "sig", "enc", "", 1, .null]
        let operations: [JSONValue?] = [nil, ["verify"], ["sign", "verify"], ["encrypt", "wrapKey"], [], "verify"]
        var count = 0
        for use in uses {
            for operation in operations {
                var jwk = key.with("kid", "k")
                if let use { jwk = jwk.with("use", use) }
                if let operation { jwk = jwk.with("key_ops", operation) }
                let keys = Self.keySet(jwk)
                let isForSignatures =
                    (use == nil || use == "sig") && (operation == nil || operation?.array?.contains("verify") == true)
                #expect(
                    keys?.has("k") == isForSignatures, "\(String(describing: use)) \(String(describing: operation))")
                count += 1
            }
        }
        #expect(count == 36)
    }
}

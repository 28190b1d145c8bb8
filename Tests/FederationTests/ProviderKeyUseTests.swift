import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Federation

/// RFC 7517 §4.2 and §4.3: which of a provider's keys are for signatures. 36 cases.
@Suite struct ProviderKeyUseTests {
    @Test func onlyKeysForSignaturesAreUsed() {
        let pair = SigningKey.generate(.es256)
        let members = pair.publicKey.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) }
        let uses: [JSONValue?] = [nil, "sig", "enc", "", 1, .null]
        let operations: [JSONValue?] = [nil, ["verify"], ["sign", "verify"], ["encrypt", "wrapKey"], [], "verify"]
        var count = 0
        for use in uses {
            for operation in operations {
                var jwk = JSONValue.object(members).with("kid", "k")
                if let use { jwk = jwk.with("use", use) }
                if let operation { jwk = jwk.with("key_ops", operation) }
                let keys = ProviderKeySet(parsing: JSONValue.object([.init("keys", [jwk])]).serialized())
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

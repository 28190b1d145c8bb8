import Base
import Messages
import TestSupport
import Testing

/// URLs that lead nowhere, or to another host than they seem to, in every setting that takes a URL.
@Suite struct URLAttackTests {
    private static let wrong: [Text] = [
        "https://", "https:///x", "https://?x", "https://#x", "https://:443", "https://a:0", "https://a:99999",
        "https://a:", "https://user@a.example", "https://a.example\\@b.example", "https://a b",
        "https://\u{E4}.example",
        "HTTPS://a", "javascript:alert(1)", "//a.example", "https:a",
    ]

    @Test func aURLNeedsAHostWhereverItIsSet() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            for url in Self.wrong {
                expectRefusal("INVALID_PHOTO_URL", "\(url)") {
                    try client.update(uid, ["photo_url"]) { $0.photoURL = url }
                }
                expectRefusal("INVALID_CONTINUE_URI", "\(url)") {
                    try client.sendOob(.passwordReset, email: "ada@example.com", continueURL: url)
                }
                expectRefusal("INVALID_ACTION_URL", "\(url)") {
                    try client.configureMail(["action_url"]) { $0.actionURL = url }
                }
                expectRefusal("INVALID_GUIDANCE", "\(url)") {
                    try client.setTenant(["guidance"]) {
                        $0.guidance = Guidance(locale: "en", message: "m", helpURL: url)
                    }
                }
                expectRefusal("INVALID_WEBHOOK", "\(url)") {
                    try client.configureMail(["webhook"]) {
                        $0.webhook = WebhookConfig(url: url, signingSecret: Secret([UInt8](repeating: 1, count: 32)))
                    }
                }
            }
        }
    }

    @Test func aWebhookOverHTTPIsRefusedWhenItIsSet() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func set(_ url: Text, private isPrivate: Bool) throws {
                try client.configureMail(["webhook", "allow_private_addresses"]) {
                    $0.webhook = WebhookConfig(url: url, signingSecret: Secret([UInt8](repeating: 1, count: 32)))
                    $0.allowPrivateAddresses = isPrivate
                }
            }
            for url in ["http://hook.example/x", "http://localhost.example", "http://127.0.0.1.example"] as [Text] {
                for isPrivate in [false, true] {
                    expectRefusal("INVALID_WEBHOOK", "\(url)") { try set(url, private: isPrivate) }
                }
            }
            expectRefusal("INVALID_WEBHOOK") { try set("http://127.0.0.1:8080/x", private: false) }
            try set("http://127.0.0.1:8080/x", private: true)
            // The allowance cannot be withdrawn while the URL needs it.
            expectRefusal("INVALID_WEBHOOK") {
                try client.configureMail(["allow_private_addresses"]) { $0.allowPrivateAddresses = false }
            }
            try set("https://hook.example/x", private: false)
        }
    }
}

import Base
import Crypto
import Messages
import TestSupport
import Testing

/// What counts as an email and as a password, and when two of them are the same.
@Suite struct CredentialFormTests {
    @Test func `Only the case of A to Z is ignored in an email, neither dots nor a plus`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let emails: [Text] = [
                "ada@example.com", "a.da@example.com", "ada+1@example.com", "ada@example.com.example", "ada@example.co",
            ]
            var uids: Set<Text> = []
            for email in emails { uids.insert(try #require(try client.signUp(email).user).uid) }
            #expect(uids.count == emails.count)
            expectRefusal("EMAIL_EXISTS") { _ = try client.signUp("ADA+1@EXAMPLE.COM") }
            #expect(try client.signIn("A.DA@example.com").user?.email == "a.da@example.com")
        }
    }

    @Test(arguments: [
        ("ädä@example.com", false), ("ada@exämple.com", false), ("ada@\u{212A}elvin.example", false),
        ("ada", false), ("ada@", false), ("@example.com", false), ("a@b@example.com", false),
        ("ada @example.com", false), ("ada,eve@example.com", false), ("<ada@example.com>", false),
        ("a@" + String(repeating: "b.", count: 125) + "bb", true),
        ("aa@" + String(repeating: "b.", count: 125) + "bb", false),
        ("ada@example.com.", false), ("ada@b..example", false), ("ada@-b.example", false),
    ])
    func `A new email is ASCII with one at-sign and at most 254 bytes`(_ email: String, _ isOne: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            expectRefusal(isOne ? "" : "INVALID_EMAIL") { _ = try client.signUp(Text(email)) }
        }
    }

    @Test(arguments: [(5, "WEAK_PASSWORD"), (6, ""), (4_096, ""), (4_097, "PASSWORD_TOO_LONG")])
    func `A password has 6 to 4,096 bytes`(_ count: Int, _ reason: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func password(_ count: Int) -> Text { Text(String(repeating: "p", count: count)) }
            func reasonOfSigningIn(_ count: Int) -> String {
                failure { _ = try client.signIn("ada@example.com", password: password(count)) }.reason
            }
            let refused = failure { _ = try client.signUp("ada@example.com", password: password(count)) }
            #expect(refused.reason == reason)
            guard reason.isEmpty else { return }
            #expect(reasonOfSigningIn(count) == "")
            #expect(reasonOfSigningIn(count - 1) == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    @Test func `A password is the same however its characters are composed`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com", password: "pa\u{DF}wo\u{308}rd")
            _ = try client.signIn("ada@example.com", password: "pa\u{DF}w\u{F6}rd")
            let other = failure { _ = try client.signIn("ada@example.com", password: "pa\u{DF}word") }
            #expect(other.reason == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    /// The other system hashed the bytes as its users typed them.
    @Test func `A password of another system is tried as it was typed, then composed`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let (decomposed, composed) = ("pa\u{DF}wo\u{308}rd", "pa\u{DF}w\u{F6}rd")
            let salt = [UInt8]("salt".utf8)
            func row(_ email: Text, _ password: String) -> ImportUser {
                let hash = Digest.sha256(salt + [UInt8](password.utf8))
                return ImportUser(uid: email, email: email, passwordHash: Secret(hash), salt: salt)
            }
            let answer = try ImportTests.importing(
                client.client, [row("ada@example.com", decomposed), row("bob@example.com", composed)],
                spec: .digest(DigestSpec(function: .sha256, rounds: 1)))
            #expect(answer.rejections.isEmpty)
            expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                _ = try client.signIn("ada@example.com", password: Text(composed))
            }
            _ = try client.signIn("ada@example.com", password: Text(decomposed))
            // The hash is ours by now, and our hashes are of the composed form.
            _ = try client.signIn("ada@example.com", password: Text(composed))
            _ = try client.signIn("bob@example.com", password: Text(decomposed))
        }
    }
}

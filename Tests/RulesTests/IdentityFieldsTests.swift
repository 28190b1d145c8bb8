import Base
import Messages
import Testing

@testable import Rules

/// What an identity says of its user is held to the rules of the user's own fields.
@Suite struct IdentityFieldsTests {
    private let limits = Limits()

    private func text(_ count: Int) -> Text { Text(String(repeating: "x", count: count)) }

    private func refusal(
        of form: Email.Form = .ascii, _ change: (inout ProviderInfo) -> Void
    ) -> (reason: String?, field: String?) {
        var provider = ProviderInfo(providerID: "google.com", rawID: "g-1")
        change(&provider)
        let found = failure { try Values.checkProvider(provider, field: "f", form: form, limits: limits) }
        return (found?.reason, found?.violations.first?.field)
    }

    @Test func `A display name has at most 256 bytes`() {
        let longest = refusal { $0.displayName = text(256) }
        #expect(longest.reason == nil)
        let longer = refusal { $0.displayName = text(257) }
        #expect(longer.reason == "INVALID_DISPLAY_NAME" && longer.field == "f.display_name")
        let odd = refusal { $0.displayName = "a\u{202E}b" }
        #expect(odd.reason == "INVALID_DISPLAY_NAME" && odd.field == "f.display_name")
    }

    @Test func `A picture is a URL of at most 2048 bytes`() {
        let longest = refusal { $0.photoURL = Text("https://a/\(text(2_038))") }
        #expect(longest.reason == nil)
        let longer = refusal { $0.photoURL = Text("https://a/\(text(2_039))") }
        #expect(longer.reason == "INVALID_PHOTO_URL" && longer.field == "f.photo_url")
        let script = refusal { $0.photoURL = "javascript:alert(1)" }
        #expect(script.reason == "INVALID_PHOTO_URL" && script.field == "f.photo_url")
    }

    @Test func `An email has at most 254 bytes and the form that the tenant allows`() {
        // 251 bytes in labels of one.
        let domain = [String](repeating: "a", count: 126).joined(separator: ".")
        let longest = refusal { $0.email = Text("a@b\(domain)") }
        #expect(longest.reason == nil)
        let longer = refusal { $0.email = Text("ab@b\(domain)") }
        #expect(longer.reason == "INVALID_EMAIL" && longer.field == "f.email")
        let nonsense = refusal { $0.email = "nonsense" }
        #expect(nonsense.reason == "INVALID_EMAIL" && nonsense.field == "f.email")
        let inASCII = refusal { $0.email = "\u{FC}@example.com" }
        #expect(inASCII.reason == "INVALID_EMAIL")
        let international = refusal(of: .international) { $0.email = "\u{FC}@example.com" }
        #expect(international.reason == nil)
    }

    @Test func `A phone number is E164`() {
        let right = refusal { $0.phoneNumber = "+14155550123" }
        #expect(right.reason == nil)
        let wrong = refusal { $0.phoneNumber = text(17) }
        #expect(wrong.reason == "INVALID_PHONE_NUMBER" && wrong.field == "f.phone_number")
    }
}

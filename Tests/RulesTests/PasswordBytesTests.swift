import Base
import Crypto
import TestSupport
import Testing

@testable import Rules

@Suite struct PasswordBytesTests {
    private let composed = Secret("caf\u{E9}")
    private let decomposed = Secret("cafe\u{301}")

    @Test func bothSpellingsOfALetterAreOnePassword() {
        #expect(composed != decomposed)
        #expect(PasswordBytes.canonical(decomposed) == composed)
        #expect(PasswordBytes.canonical(composed) == composed)
    }

    @Test func asciiStaysAsItIs() {
        let password = Secret("Tr0ub4dor &3\u{7F}\n")
        #expect(PasswordBytes.canonical(password) === password)
        #expect(PasswordBytes.canonical(.empty).isEmpty)
    }

    @Test func onlyCompositionChangesNothingElse() {
        // Compatibility forms stay apart: NFKC would replace them, and would merge different passwords.
        for text in ["\u{FB01}", "\u{212A}"] {
            #expect(PasswordBytes.canonical(Secret(text)) != Secret(text == "\u{FB01}" ? "fi" : "k"))
        }
        #expect(PasswordBytes.canonical(Secret("\u{212B}")) == Secret("\u{C5}"))
        #expect(PasswordBytes.canonical(Secret("\u{1100}\u{1161}")) == Secret("\u{AC00}"))
        #expect(
            PasswordBytes.canonical(Secret("a\u{323}\u{307}")) == PasswordBytes.canonical(Secret("a\u{307}\u{323}")))
        #expect(PasswordBytes.canonical(Secret("Ä  😀")) == Secret("Ä  😀"))
    }

    @Test func canonicalBytesAreCanonical() {
        var random = SeededRandom.printed()
        let scalars: [Unicode.Scalar] = [
            "a", "e", "\u{301}", "\u{308}", "\u{323}", "\u{E9}", "\u{1100}", "\u{1161}", "😀",
        ]
        for _ in 0..<1_000 {
            var text = ""
            for _ in 0..<random.below(8) { text.unicodeScalars.append(scalars[random.below(scalars.count)]) }
            let once = PasswordBytes.canonical(Secret(text))
            #expect(PasswordBytes.canonical(once) == once)
            // The two are canonically equivalent: the standard library compares strings so.
            #expect(once.withBytes { String(decoding: $0, as: UTF8.self) } == text)
        }
    }

    @Test func ownHashesAreTriedComposedFirstAndOthersAsTyped() {
        #expect(PasswordBytes.candidates(decomposed, for: .argon2id) == [composed, decomposed])
        #expect(PasswordBytes.candidates(decomposed, for: .bcrypt) == [decomposed, composed])
        #expect(PasswordBytes.candidates(decomposed, for: .firebaseScrypt) == [decomposed, composed])
        for kind in PasswordCredential.Kind.allCases {
            #expect(PasswordBytes.candidates(composed, for: kind) == [composed])
            #expect(PasswordBytes.candidates(Secret("plain"), for: kind) == [Secret("plain")])
        }
    }
}

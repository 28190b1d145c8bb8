import Testing

@testable import Cluster

@Suite struct JournalAddressTests {
    @Test func aPasswordInTheAddressIsRefused() {
        for url in ["postgresql://u:secret@h/d", "postgresql://h/d?password=x", "host=h password=x"] {
            let problem = #expect(throws: JournalAddress.Problem.self) { try JournalAddress(url) }
            #expect(problem.map { "\($0)".contains("--journal-password-file") } == true)
        }
    }

    @Test func whatIsNoAddressIsRefused() {
        for url in ["postgresql://[h/d", "nonsense", "host=h nonsense=1"] {
            #expect(throws: JournalAddress.Problem.self, "\(url)") { try JournalAddress(url) }
        }
    }

    /// libpq begins further lines of a message with a tab.
    @Test func `A message of libpq becomes one line`() {
        #expect("refused\n\tIs it running?\n".withCString { inOneLine($0) } == "refused; Is it running?")
    }

    @Test func aSchemaHasAPlainName() throws {
        for name in ["", "Postern", "1a", "a b", "a\"b", String(repeating: "a", count: 49), "ä"] {
            #expect(throws: JournalAddress.Problem.self, "\(name)") {
                try JournalAddress("postgresql:///d", schema: name)
            }
        }
        for name in ["a", "postern_2", String(repeating: "a", count: 48)] {
            _ = try JournalAddress("postgresql:///d", schema: name)
        }
    }
}

import Testing

@testable import Outbound

@Suite struct SMTPCapabilitiesTests {
    private func capabilities(_ lines: [String]) -> SMTPCapabilities {
        var capabilities = SMTPCapabilities()
        for line in lines { Array("\(line)\r\n".utf8).withUnsafeBytes { capabilities.received($0) } }
        return capabilities
    }

    @Test func nothingIsKnownBeforeTheServerHasSaidHello() {
        #expect(!capabilities([]).isKnown)
        #expect(!capabilities(["220 mail.example SMTPUTF8", "502 no"]).isKnown)
    }

    @Test(arguments: ["250-SMTPUTF8", "250 SMTPUTF8", "250-smtpUTF8", "250 SMTPUTF8 x"])
    func theKeywordIsFound(_ line: String) {
        let found = capabilities(["220 hi", "250-mail.example", line, "250 HELP"])
        #expect(found.isKnown && found.hasUTF8)
    }

    @Test(arguments: ["250-SMTPUTF", "250-SMTPUTF88", "250-8BITMIME SMTPUTF8", "550 SMTPUTF8", "250"])
    func otherLinesAreNot(_ line: String) {
        #expect(!capabilities(["220 hi", "250-mail.example", line]).hasUTF8)
    }

    @Test func whatWasSaidBeforeTLSDoesNotCount() {
        let found = capabilities(["220 hi", "250-SMTPUTF8", "250 STARTTLS", "220 go ahead", "250 mail.example"])
        #expect(found.isKnown && !found.hasUTF8)
    }
}

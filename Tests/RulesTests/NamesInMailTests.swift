import Base
import Messages
import Testing

@testable import Rules

/// Anybody may give an account a name, and a mail with it goes to an address that nobody proved.
@Suite struct NamesInMailTests {
    private static func shown(_ name: Text) -> Text {
        MailText.Values(appName: "", email: "", newEmail: "", displayName: name, link: "L").displayName
    }

    @Test(
        arguments: [
            "Pay at https://evil.example/acme", "http://1.2.3.4", "//evil", "evil.example", "Ada www.evil.example",
            "ada@evil.example", "see evil.example.", "EVIL.COM", "b\u{FC}cher.example", "evil\u{3002}example",
            "evil\u{FF0E}example", "evil\u{FF61}example", "\u{4F8B}\u{3048}.\u{30C6}\u{30B9}\u{30C8}", "x.1a",
            "evilu\u{308}.example", "i\u{2764}.ws", "evil\u{200B}.example", "evil.\u{AD}example", "M.Sc. Ada",
        ] as [Text])
    func `A name that could be made a link is left out of mails`(_ name: Text) {
        #expect(Self.shown(name).isEmpty)
    }

    @Test(
        arguments: [
            "Ada Lovelace", "J. R. R. Tolkien", "J.R.R. Tolkien", "Martin Luther King Jr.", "St. John", "AC/DC", "@ada",
            "Dr. No", "No. 5", "Ren\u{E9} M.", "3.5", "...", ".", "a.", ".a", "", "a. b.", "\u{9EC4}\u{3002}",
            "J.-P. Dupont", "K.-H. Meier", "Dr.-Ing. Weber", "Ph.D.", "e.V.", "a-.-b-",
        ] as [Text])
    func `Other names are shown as they are`(_ name: Text) { #expect(Self.shown(name) == name) }
}

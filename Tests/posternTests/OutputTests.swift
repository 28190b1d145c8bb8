import Base
import JSON
import Messages
import Testing

@testable import postern

@Suite struct OutputTests {
    private let user = User(
        tenantID: "acme", uid: "u1", email: "ann@example.com", displayName: Text("Ann\u{1B}[2J"),
        providers: [ProviderInfo(providerID: "password", rawID: "ann@example.com")],
        customClaimsJSON: [UInt8](#"{"role":"x"}"#.utf8), createdAtMicros: 1_800_000_000_000_000)

    private func printed(
        _ format: Output.Format, fields: [String]? = nil, isQuiet: Bool = false, hasHeaders: Bool = true,
        _ body: (Output) -> Void
    ) -> String {
        let test = TestConsole()
        body(Output(format: format, fields: fields, isQuiet: isQuiet, hasHeaders: hasHeaders, console: test.console))
        return test.written
    }

    @Test func `A list is a table with columns as wide as they must be`() {
        let text = printed(.table) { $0.print([user, User(uid: "a-longer-uid")]) }
        #expect(
            text == """
                UID           EMAIL            DISPLAY_NAME  DISABLED  PROVIDERS  CREATED_AT
                u1            ann@example.com  Ann\u{FFFD}[2J       false     password   2027-01-15T08:00:00Z
                a-longer-uid  -                -             false     -          -

                """)
        #expect(printed(.table, hasHeaders: false) { $0.print([user]) }.hasPrefix("u1  ann"))
    }

    @Test func `One record is a line per field`() {
        let text = printed(.table) { $0.print(SigningKeyInfo(keyID: "k", algorithm: "RS256", state: .signing)) }
        #expect(
            text == """
                key_id      k
                algorithm   RS256
                state       SIGNING_KEY_STATE_SIGNING
                created_at  -
                signs_from  -
                retires_at  -
                token_use   TOKEN_USE_UNSPECIFIED
                rotates_at  -

                """)
    }

    @Test func `A text's lines are shown as lines, in the values' column, other control characters replaced`() {
        let mail = OutboxGetResponse(
            contents: OutboxContents(
                subject: "Hi", text: "Hello\r\n\nuid  \u{1B}x\n", html: "\n", link: "https://x.org",
                notMeLink: "https://x.org/no"))
        let text = printed(.table) { $0.print(mail) }
        #expect(
            text == """
                message               -
                contents.subject      Hi
                contents.text         Hello

                                      uid  \u{FFFD}x
                contents.html         -
                contents.link         https://x.org
                contents.not_me_link  https://x.org/no
                contents.code         -

                """)
        // A row of a list stays one line.
        #expect(printed(.table) { $0.print([User(uid: "u1", displayName: "a\nb")]) }.contains("a\u{FFFD}b"))
    }

    @Test func `JSON has the proto's names, whatever the values are`() throws {
        let text = printed(.json) { $0.print(user) }
        let json = try JSONValue(parsing: [UInt8](text.utf8))
        #expect(json["tenant_id"] == "acme")
        #expect(json["display_name"]?.text == user.displayName)
        #expect(json["custom_claims_json"] == ["role": "x"])
        #expect(json["created_at_micros"] == 1_800_000_000_000_000)
        #expect(json["phone_number"] == "")
        #expect(json["providers"]?.array?.first?["provider_id"] == "password")
    }

    @Test func `A list is an array, or a line per record, or the ids alone`() throws {
        let users = [user, User(uid: "u2")]
        #expect(try JSONValue(parsing: [UInt8](printed(.json) { $0.print(users) }.utf8)).array?.count == 2)
        let lines = printed(.ndjson) { $0.print(users) }.split(separator: "\n")
        #expect(try lines.map { try JSONValue(parsing: [UInt8]($0.utf8))["uid"] } == ["u1", "u2"])
        #expect(printed(.json, isQuiet: true) { $0.print(users) } == "u1\nu2\n")
    }

    @Test func `An id is one line, and names do not move the cursor`() throws {
        let mallory = User(uid: "a\nb\u{1B}[2J", displayName: "\u{9B}2J\u{7F}\u{A9}")
        let ids = [printed(.name) { $0.print([mallory]) }, printed(.table, isQuiet: true) { $0.print(mallory) }]
        #expect(ids == ["a\u{FFFD}b\u{FFFD}[2J\n", "a\u{FFFD}b\u{FFFD}[2J\n"])
        for format in [Output.Format.json, .ndjson] {
            let text = printed(format) { $0.print(mallory) }
            let isPlain = !text.unicodeScalars.contains { $0.value == 0x1B || (0x7F...0x9F).contains($0.value) }
            #expect(isPlain, "\(format)")
            #expect(try JSONValue(parsing: [UInt8](text.utf8))["display_name"]?.text == mallory.displayName)
        }
        let test = TestConsole()
        test.console.say("a\u{1B}b\nc")
        test.console.sayError("a\u{9B}b")
        #expect(test.said == "a\u{FFFD}b\nc\nerror: a\u{FFFD}b\n")
    }

    @Test func `Enums have the proto's names`() {
        #expect(Toggle.disabledUserSignup.json == "TOGGLE_DISABLED_USER_SIGNUP")
        #expect(Role.tenantAdmin.json == "ROLE_TENANT_ADMIN")
        #expect(RefreshOutcome.repeatedAfterLoss.json == "REFRESH_OUTCOME_REPEATED_AFTER_LOSS")
    }

    @Test func `Every column is a field of its record`() {
        func check<Element: Record>(_ record: Element) {
            for column in Element.columns {
                let value = column.split(separator: ".").reduce(record.json as JSONValue?) { $0?[Text(String($1))] }
                #expect(value != nil, "\(Element.self): \(column)")
            }
        }
        check(Tenant())
        check(User())
        check(ApiKey())
        check(SigningKeyInfo())
        check(Denial())
        check(DenialCount())
        check(ProjectServerInfoResponse())
        check(StatsValue())
        check(TokensRefreshResponse())
        check(TokensVerifyIdTokenResponse())
        check(SignedIn(user: User(), tokens: TokenPair()))
        check(ContextFile.Context(name: "", server: "", tenant: "", apiKeyFile: ""))
    }

    @Test func `CSV has every field, quoted where it must be`() {
        var bob = User(uid: "b,\"o\"b", email: "bob@example.com", disabled: true)
        bob.providers = [ProviderInfo(providerID: "password")]
        let lines = printed(.csv) { $0.print([bob]) }.split(separator: "\r\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("tenant_id,uid,email,"))
        #expect(lines[1].hasPrefix(",\"b,\"\"o\"\"b\",bob@example.com,"))
        let some = printed(.csv, fields: ["uid", "disabled"]) { $0.print([bob, user]) }
        #expect(some == "uid,disabled\r\n\"b,\"\"o\"\"b\",true\r\nu1,false\r\n")
        #expect(printed(.csv, hasHeaders: false) { $0.print([] as [User]) }.isEmpty)
    }

    @Test func `Wide tables have every field, names alone are names`() {
        let wide = printed(.wide) { $0.print([user]) }.split(separator: "\n")
        #expect(wide[0].hasPrefix("UID") && wide[0].contains("EMAIL_VERIFIED") && wide[0].contains("PHONE_NUMBER"))
        #expect(printed(.name) { $0.print([user, User(uid: "u2")]) } == "u1\nu2\n")
    }

    @Test func `Fields are chosen in any format, and a misspelt one is told`() {
        #expect(printed(.table, fields: ["email"]) { $0.print([user]) } == "EMAIL\nann@example.com\n")
        #expect(
            printed(.ndjson, fields: ["uid", "email"]) { $0.print([user]) }
                == "{\"uid\":\"u1\",\"email\":\"ann@example.com\"}\n")
        let nested = printed(.ndjson, fields: ["client.permissions.disabled_user_signup"]) { $0.print(Tenant()) }
        #expect(nested == "{\"client.permissions.disabled_user_signup\":false}\n")
        let test = TestConsole()
        for format in Output.Format.allCases where format != .name {
            let output = Output(
                format: format, fields: ["emial"], isQuiet: false, hasHeaders: true, console: test.console)
            output.print([user])
            #expect(output.fieldProblem?.message == "there is no field emial", "\(format)")
            // Usage would say that nothing was sent.
            #expect(output.fieldProblem?.hint == "did you mean email?" && output.fieldProblem?.exitCode == .general)
        }
    }

    @Test func `A time may be named as tables name it, in any format`() {
        let (short, exact) = (["created_at"], "created_at_micros")
        #expect(printed(.table, fields: short) { $0.print([user]) } == "CREATED_AT\n2027-01-15T08:00:00Z\n")
        #expect(printed(.table, fields: short) { $0.print(user) } == "created_at  2027-01-15T08:00:00Z\n")
        #expect(printed(.csv, fields: short) { $0.print([user]) } == "\(exact)\r\n1800000000000000\r\n")
        #expect(printed(.ndjson, fields: short) { $0.print(user) } == "{\"\(exact)\":1800000000000000}\n")
    }

    @Test func `Records that come over time have one header and one number of cells, whichever comes first`() {
        let plain = AuditEvent(sequence: 1, uid: "u1")
        let change = AuditEvent(
            sequence: 2, proof: EventProof(globalSequence: 7),
            settingsChange: SettingsChange(revision: 5, paths: ["display_name"]))
        for events in [[plain, change, plain], [change, plain, change]] {
            let lines = printed(.csv) { output in events.forEach { output.printNext($0) } }.split(separator: "\r\n")
            let rows = lines.map { $0.split(separator: ",", omittingEmptySubsequences: false) }
            #expect(lines.count == 4 && lines.first?.hasPrefix("sequence,time_micros,kind,uid") == true, "\(lines)")
            let place = rows.first?.firstIndex(of: "settings_change.revision") ?? 0
            let revisions = rows.dropFirst().map { String($0[place]) }
            let expected: [String] = events.map { $0.settingsChange == nil ? "" : "5" }
            #expect(revisions == expected, "\(lines)")
            // Only the list of changes has commas of its own.
            let counts = Set(rows.filter { $0.first != "2" }.map(\.count))
            #expect(counts.count == 1, "\(lines)")
            let naming = lines.filter { $0.contains("display_name") }
            let changes = events.filter { $0.settingsChange != nil }
            #expect(naming.count == changes.count, "\(lines)")
            let wide = printed(.wide) { output in events.forEach { output.printNext($0) } }.split(separator: "\n")
            #expect(wide.count == 4 && wide.first?.contains("REVISION") == true, "\(wide)")
            let widths = Set(wide.map { $0.split(separator: " ").count })
            #expect(widths == counts, "\(wide)")
        }
    }

    @Test func `What happens to a session has the same cells when the account is gone`() {
        let signedIn = SessionsWatchAuthStateResponse(user: User(uid: "u1"), session: Messages.Session(sessionID: "s1"))
        let gone = SessionsWatchAuthStateResponse(endCause: "ADMIN")
        for states in [[signedIn, gone], [gone, signedIn]] {
            let lines = printed(.csv) { output in states.forEach { output.printNext($0) } }.split(separator: "\r\n")
            let counts = lines.map { $0.split(separator: ",", omittingEmptySubsequences: false).count }
            #expect(counts.count == 3 && Set(counts).count == 1, "\(lines)")
            #expect(lines.first?.contains("user.uid") == true, "\(lines)")
            let signedInLines = lines.filter { $0.contains("u1") }
            #expect(signedInLines.count == 1, "\(lines)")
        }
    }

    @Test func `Rows that come over time stay below their headers`() {
        let text = printed(.table) { output in
            output.printNext(User(uid: "a-much-longer-uid", email: "a@b.example"))
            output.printNext(User(uid: "u2", email: "x@y.example"))
        }
        let places = zip(text.split(separator: "\n"), ["EMAIL", "a@b.example", "x@y.example"]).map { line, word in
            line.split(separator: word, omittingEmptySubsequences: false).first?.count
        }
        #expect(places == [19, 19, 19], "\(text)")
    }

    @Test func `With -q a record without an id prints no empty line`() {
        #expect(printed(.table, isQuiet: true) { $0.print(HookConfig()) }.isEmpty)
    }
}

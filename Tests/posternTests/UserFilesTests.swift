import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import postern

/// Files of users, read and written in each of their forms.
@Suite struct UserFilesTests {
    /// The items of a file, read in pieces of `chunk` bytes.
    private static func items(_ format: UserFileFormat, _ file: [UInt8], chunk: Int = 7) throws -> [ImportItem] {
        var rest = file[...]
        var source = format.source {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(chunk) }
            return Array(rest.prefix(chunk))
        }
        var items: [ImportItem] = []
        while let item = try source.next() { items.append(item) }
        return items
    }

    private static func users(_ items: [ImportItem]) -> [ImportUser] {
        items.compactMap { if case .user(let user, _) = $0 { user } else { nil } }
    }

    private static func reasons(_ items: [ImportItem]) -> [String] {
        items.compactMap { if case .rejected(let rejection) = $0 { rejection.message } else { nil } }
    }

    /// The error that ends reading a file of ours. Nil: it was read to its end.
    private static func fault(_ file: [UInt8]) -> String? {
        do {
            _ = try items(.ndjson, file)
            return nil
        } catch {
            return (error as? CommandError)?.message ?? "\(error)"
        }
    }

    private static func google() -> ProviderInfo {
        ProviderInfo(
            providerID: "google.com", rawID: "g-1", email: "ann@gmail.com", displayName: "Ann, \"A\"",
            photoURL: "https://example.com/g.png")
    }

    /// A user with the fields that every form keeps.
    private static func ann() -> ImportUser {
        var ann = ImportUser(uid: "ann", email: "ann@example.com", emailVerified: true, displayName: "Ann, \"the\" A")
        (ann.photoURL, ann.phoneNumber, ann.disabled) = ("https://example.com/a.png", "+14155550101", true)
        ann.customClaimsJSON = [UInt8](#"{"role":"a\"b","path":"c:\\","n":[1,2]}"#.utf8)
        (ann.createdAtMicros, ann.lastSignInAtMicros) = (1_508_893_925_000_000, 1_508_893_926_000_000)
        (ann.passwordHash, ann.salt, ann.hashSpec) = (Secret([1, 2, 0xFF]), [0xFB, 0xEF], "s")
        ann.providers = [google()]
        return ann
    }

    private static let spec = NamedHashSpec(
        name: "s",
        spec: PasswordHashSpec(
            algorithm: .firebaseScrypt(
                FirebaseScryptSpec(signerKey: Secret([1, 2, 3]), saltSeparator: [7], rounds: 8, memoryCost: 14))))

    private static func written(_ format: UserFileFormat, _ users: [ImportUser]) -> [UInt8] {
        var writer = UserFileWriter(format: format, algorithm: format == .ndjson ? nil : HashAlgorithm(of: spec.spec))
        var file = writer.begin(tenantID: "acme") + writer.lines(of: spec)
        for (index, user) in users.enumerated() { file += writer.line(user, isFirst: index == 0) }
        return file + writer.end(userCount: Int64(users.count))
    }

    @Test(arguments: UserFileFormat.allCases, [1, 7, 100_000])
    func `What is written is read again`(_ format: UserFileFormat, chunk: Int) throws {
        var ann = Self.ann()
        let users = [ann, ImportUser(uid: "bob"), ann]
        let items = try Self.items(format, Self.written(format, users), chunk: chunk)
        if format != .ndjson { ann.hashSpec = .empty }
        #expect(Self.users(items) == [ann, ImportUser(uid: "bob"), ann])
        #expect(items.contains(.hashSpec(Self.spec)) == (format == .ndjson))
        #expect(Self.reasons(items).isEmpty)
    }

    @Test func `Our own form loses nothing`() throws {
        var user = Self.ann()
        (user.emailLinkSignIn, user.passwordUpdatedAtMicros) = (true, 5)
        user.providers.append(ProviderInfo(providerID: "oidc.corp", rawID: "1", phoneNumber: "+1", issuer: "https://i"))
        let factor = SecondFactor(factorID: "f", kind: .totp, displayName: "app", enrolledAtMicros: 9)
        user.secondFactors = [ImportSecondFactor(factor: factor, totpSecret: Secret([1, 2]))]
        (user.customTokenSignIn, user.emailTypedByUser) = (true, true)
        #expect(Self.users(try Self.items(.ndjson, UserLines.line(user))) == [user])
    }

    @Test func `A form of Firebase says what it leaves out`() {
        var user = Self.ann()
        user.hashSpec = "another"
        user.providers.append(ProviderInfo(providerID: "oidc.corp", rawID: "1"))
        var writer = UserFileWriter(format: .firebaseCSV, algorithm: HashAlgorithm(of: Self.spec.spec))
        _ = writer.lines(of: Self.spec)
        _ = writer.line(user, isFirst: true)
        #expect(
            writer.notes == [
                "the hashes were made with --hash-algo scrypt --hash-key AQID --salt-separator Bw== --rounds 8 "
                    + "--mem-cost 14",
                "1 password hashes of other algorithms were left out",
                "1 identities of providers that Firebase does not export were left out",
            ])
    }

    // MARK: How passwords were hashed

    @Test(arguments: PasswordVector.all)
    func `How a password was hashed is written and read again, by file and by flags`(_ vector: PasswordVector) throws {
        let spec = NamedHashSpec(name: "s", spec: PasswordHashSpec(algorithm: vector.algorithm))
        #expect(try Self.items(.ndjson, UserLines.line(spec)) == [.hashSpec(spec)])
        let name = try #require(HashAlgorithm(of: spec.spec)).name
        #expect(HashAlgorithm.names.contains(name))
        #expect(try HashAlgorithm(named: name.uppercased()).name == name)
        let flags = try #require(HashAlgorithm.flags(of: PasswordHashSpec(algorithm: vector.algorithm)))
        #expect(flags.hasPrefix("--hash-algo \(name) "))
    }

    @Test(arguments: [Argon2Variant.d, .i, .id])
    func `How argon2 with its salt apart was made is written and read again`(_ variant: Argon2Variant) throws {
        let spec = Argon2Spec(
            variant: variant, version: 16, memoryKib: 64, iterations: 3, parallelism: 2, associatedData: [1, 2])
        let named = NamedHashSpec(name: "s", spec: PasswordHashSpec(algorithm: .argon2(spec)))
        #expect(try Self.items(.ndjson, UserLines.line(named)) == [.hashSpec(named)])
        #expect(
            HashAlgorithm.flags(of: PasswordHashSpec(algorithm: .argon2(spec)))
                == "--hash-algo argon2 --mem-cost 64 --rounds 3 --parallelization 2 --argon2-variant argon2\(variant) "
                + "--argon2-version 16 --associated-data AQI=")
    }

    @Test func `An algorithm that there is not is refused with the nearest`() {
        #expect { try HashAlgorithm(named: "HMAC_SHA265") } throws: { error in
            (error as? CommandError)?.hint == "did you mean hmac_sha256?"
        }
    }

    // MARK: CSV

    @Test func `Lines of every width that Firebase wrote are read`() throws {
        let old =
            "u1,user1@test.com,false,lSrf,42xEC+ixf3L2lw==,Test User 1"
            + String(repeating: ",", count: 18) + "1508893925000,1508893926000,,"
        for line in [old, old + ",", old + ",,", old + String(repeating: ",", count: 26)] {
            let user = try #require(Self.users(try Self.items(.firebaseCSV, Array((line + "\n").utf8))).first)
            #expect(user.uid == "u1" && user.email == "user1@test.com" && user.displayName == "Test User 1")
            #expect(user.createdAtMicros == 1_508_893_925_000_000 && user.lastSignInAtMicros == 1_508_893_926_000_000)
            #expect(user.salt == [0xE3, 0x6C, 0x44, 0x0B, 0xE8, 0xB1, 0x7F, 0x72, 0xF6, 0x97])
        }
    }

    @Test func `Quotes in claims are read as Firebase writes them, and as others do`() throws {
        let claims = #"{"a":"x\"","b":"\\"}"#
        let cells = [String](repeating: "", count: 26)
        let firebase = #"{""a"":""x\""",""b"":""\\"}"#
        let standard = claims.replacing("\"", with: "\"\"")
        for quoted in [firebase, standard] {
            let line = (["u1"] + cells + ["\"\(quoted)\""]).joined(separator: ",") + "\r\n"
            let users = Self.users(try Self.items(.firebaseCSV, Array(line.utf8)))
            #expect(users.map { String(decoding: $0.customClaimsJSON, as: UTF8.self) } == [claims], "\(quoted)")
        }
    }

    @Test func `A bad line is refused with a reason, and the next one is read`() throws {
        let good = "good" + String(repeating: ",", count: 26) + "\n"
        let bad: [([UInt8], String)] = [
            (Array("a,b\n".utf8), "the row has 2 columns; Firebase writes 26 to 28, or 52"),
            (Array("u,e,yes\(String(repeating: ",", count: 24))\n".utf8), "column 2 is no true or false"),
            (Array("u,e,,%%\(String(repeating: ",", count: 23))\n".utf8), "column 3 is no base64"),
            ([0x75, 0x2C, 0xFF] + Array("\(String(repeating: ",", count: 25))\n".utf8), "column 1 is no UTF-8"),
            (
                Array("u\(String(repeating: ",", count: 23))12x,,,\n".utf8),
                "column 23 is no number of milliseconds"
            ),
            (
                Array((String(repeating: "x", count: 2_000_000) + "\n").utf8), "the row is above 1048576 bytes"
            ),
        ]
        for (line, message) in bad {
            let items = try Self.items(.firebaseCSV, line + Array(good.utf8), chunk: 65_536)
            #expect(Self.reasons(items) == [message])
            #expect(Self.users(items).map(\.uid) == ["good"], "\(message)")
        }
        // The end of the file ends the last row, however long the row is.
        let endless = Array(good.utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: 2_000_000)
        let items = try Self.items(.firebaseCSV, endless, chunk: 65_536)
        #expect(Self.reasons(items) == ["the row is above 1048576 bytes"] && Self.users(items).count == 1)
        #expect(throws: CommandError.self) { try Self.items(.firebaseCSV, Array("a,\"b".utf8)) }
        #expect(try Self.items(.firebaseCSV, []).isEmpty)
    }

    // MARK: Lines

    @Test func `A bad line of ours is refused with a reason, and the next one is read`() throws {
        let bad: [([UInt8], String)] = [
            (Array("[]".utf8), "the line is no object"), (Array(#"{"uid":1}"#.utf8), "uid is no string"),
            (Array(#"{"uid":"a","emial":"x"}"#.utf8), "there is no field emial"),
            (Array(#"{"uid":"a","disabled":"true"}"#.utf8), "disabled is no true or false"),
            (Array(#"{"uid":"a","password_hash":"%"}"#.utf8), "password_hash is no base64"),
            (Array(#"{"uid":"a","created_at_micros":-1}"#.utf8), "created_at_micros is no whole number from 0 on"),
            (Array(#"{"uid":"a","created_at_micros":1e300}"#.utf8), "created_at_micros is no whole number from 0 on"),
            (Array(#"{"uid":"a","providers":[1]}"#.utf8), "providers is no array of objects"),
            (
                Array(#"{"uid":"a","second_factors":[{"kind":"x"}]}"#.utf8),
                "kind is no kind of second factor: phone or totp"
            ),
            (Array(#"{"hash_spec":"a","algorithm":"rot13"}"#.utf8), "algorithm is no algorithm that is known"),
            (Array(#"{"postern_users":2}"#.utf8), "postern_users is no version that is known: 1"),
            ([UInt8](repeating: 0x78, count: 2_000_000), "the line is above 1048576 bytes"),
        ]
        for (line, message) in bad {
            let items = try Self.items(.ndjson, line + Array("\n\n{\"uid\":\"good\"}".utf8), chunk: 65_536)
            #expect(Self.reasons(items) == [message])
            #expect(Self.users(items).map(\.uid) == ["good"])
        }
        let broken = try Self.items(.ndjson, [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D, 0x0A])
        #expect(Self.reasons(broken).count == 1)
    }

    @Test func `A file of ours that was cut at the end of a line, or lost one, is not complete`() throws {
        let users = ["ann", "bob", "carl"].map { ImportUser(uid: Text($0)) }
        let whole = Self.written(.ndjson, users)
        // The header, a spec, three users, and their number.
        let lines = whole.split(separator: 0x0A).map { Array($0) + [0x0A] }
        #expect(lines.count == 6)
        for count in 1..<6 {
            let cut = Array(lines[..<count].joined())
            #expect(Self.fault(cut) == "the file ends in the middle: it is not complete")
        }
        let lost = Array((lines[..<3] + lines[4...]).joined())
        #expect(Self.fault(lost) == "the file is not complete: it has 2 of 3 users")
        #expect(Self.users(try Self.items(.ndjson, whole + whole)) == users + users)
        // As other programs make such files, and older versions.
        #expect(Self.users(try Self.items(.ndjson, Array(lines[1..<5].joined()))) == users)
        let old = [UInt8](#"{"postern_users":1,"tenant_id":"acme"}"#.utf8) + [0x0A]
        #expect(Self.users(try Self.items(.ndjson, old + lines[2])) == [users[0]])
    }

    // MARK: Going on

    @Test func `An import goes on behind what is settled, with its counts`() throws {
        try withTemporaryDirectory { directory in
            writeFile("\(directory)/users", Array("0123456789".utf8))
            let source = try File.open("\(directory)/users")
            let tenant = ServedTenant(server: "127.0.0.1:7400", tenantID: "acme")
            let target = ImportCheckpoint.Target(tenant: tenant, format: .ndjson)
            let fresh = try ImportCheckpoint("\(directory)/at", of: source, to: target)
            #expect(fresh.settled == ImportTotals.Settled())
            var totals = ImportTotals(before: fresh.settled)
            for row in 1...6 as ClosedRange<Int64> {
                totals.readCount = row
                if [2, 6].contains(row) { totals.noteLocalRejection() }
            }
            // Of the rows 1, 3, 4 and 5, three are settled; the second of these was refused.
            totals.note(UsersImportResponse(createdCount: 2, rejections: [ImportRejection(index: 1)], checkpoint: 3))
            try fresh.note(totals.settled)
            let next = try ImportCheckpoint("\(directory)/at", of: source, to: target)
            #expect(next.settled == ImportTotals.Settled(rowCount: 4, createdCount: 2, rejectedCount: 2))
            var rest = ImportTotals(before: next.settled)
            for row in 1...6 as ClosedRange<Int64> {
                rest.readCount = row
                if row == 6 { rest.noteLocalRejection() }
            }
            #expect(rest.row(ofSent: 0) == 5)
            rest.note(UsersImportResponse(createdCount: 1, checkpoint: 1))
            #expect(rest.isComplete && rest.summary == "read 6, created 3, replaced 0, skipped 0, rejected 3")
            writeFile("\(directory)/users", Array("another".utf8))
            let other = try File.open("\(directory)/users")
            #expect(throws: CommandError.self) { try ImportCheckpoint("\(directory)/at", of: other, to: target) }
        }
    }

    @Test func `A file's name says its form`() throws {
        #expect(try UserFileFormat.find(nil, path: "a/users.CSV") == .firebaseCSV)
        #expect(try UserFileFormat.find(nil, path: "users.json") == .firebaseJSON)
        #expect(try UserFileFormat.find(nil, path: "users.ndjson") == .ndjson)
        #expect(try UserFileFormat.find("firebase-csv", path: "users.json") == .firebaseCSV)
        #expect(throws: CommandError.self) { try UserFileFormat.find(nil, path: "users") }
        #expect(throws: CommandError.self) { try UserFileFormat.find("xml", path: "users.json") }
    }
}

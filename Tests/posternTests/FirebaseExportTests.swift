import Base
import Messages
import TestSupport
import Testing

@testable import postern

@Suite struct FirebaseExportTests {
    /// The rows that the reader finds when it is fed pieces of `chunk` bytes.
    private func rows(_ text: String, chunk: Int) throws -> [String] {
        var rest = [UInt8](text.utf8)[...]
        var reader = FirebaseExportReader {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(chunk) }
            return Array(rest.prefix(chunk))
        }
        var rows: [String] = []
        while let row = try reader.next() { rows.append(String(decoding: row, as: UTF8.self)) }
        return rows
    }

    @Test(arguments: [1, 2, 7, 1_000])
    func `Users are cut out of the file, however it arrives`(chunk: Int) throws {
        let one = #"{"localId": "a", "displayName": "}]\"{[", "providerUserInfo": [{"rawId": "1"}]}"#
        let two = #"{"localId":"b","customAttributes":"{\"users\":[]}"}"#
        for (file, expected) in [
            ("{\"users\": [\n\(one),\n\(two)]}", [one, two]),
            ("{\"users\":[]}", []),
            (#"{"kind":"x","more":{"users":[{"no":1}]},"list":[[{}]],"users":[\#(two)],"next":1}"#, [two]),
        ] {
            #expect(try rows(file, chunk: chunk) == expected)
        }
    }

    @Test(
        arguments: [
            ("", "there is no array \"users\" in the file"), ("{}", "there is no array \"users\" in the file"),
            ("[{}]", "there is no array \"users\" in the file"),
            (#"{"users":{}}"#, "there is no array \"users\" in the file"),
            (#"{"users":[{"localId":"a"}"#, "the file ends in the middle: it is not complete"),
            (#"{"users":[{"localId":"a"#, "the file ends in the middle: it is not complete"),
            (#"{"users":[7]}"#, "\"users\" holds something that is no object"),
        ])
    func `A file that is something else, or cut off, is refused`(file: String, message: String) {
        let error = #expect(throws: CommandError.self) { try rows(file, chunk: 10) }
        #expect(error?.message == message)
    }

    @Test func `A user without an end does not fill the memory`() {
        let endless = #"{"users":[{"localId":""# + String(repeating: "x", count: FirebaseExportReader.userByteCountMax)
        let error = #expect(throws: CommandError.self) { try rows(endless, chunk: 4_096) }
        #expect(error?.message == "the file ends in the middle: it is not complete")
    }

    @Test(arguments: [7, 65_536])
    func `A user that is too long is refused, and the next one is read`(chunk: Int) throws {
        let long = String(repeating: "x", count: 2 << 20)
        var rest = [UInt8](#"{"users":[{"localId":"a"},{"localId":"\#(long)"},{"localId":"b"}]}"#.utf8)[...]
        var source: any ImportSource = UserFileFormat.firebaseJSON.source {
            defer { rest = rest.dropFirst(chunk) }
            return rest.isEmpty ? nil : Array(rest.prefix(chunk))
        }
        var found: [String] = []
        while let item = try source.next() {
            switch item {
            case .user(let user, _): found.append(user.uid.string)
            case .rejected(let rejection): found.append(rejection.message)
            case .hashSpec: break
            }
        }
        #expect(found == ["a", "the user is above 1048576 bytes", "b"])
    }

    @Test func `The sample export is read with everything Postern keeps`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let descriptor = try File.open("/\(root)/tools/examples/firebase-export.json")
        var reader = FirebaseExportReader { try File.readChunk(descriptor: descriptor, name: "sample") }
        var users: [ImportUser] = []
        while let row = try reader.next() { users.append(try FirebaseUser(parsing: row).user) }
        #expect(users.count >= 4)
        let first = try #require(users.first)
        #expect(first.uid == "kYi4EvWQlQTKSfnJ3dRSP6IH3ed2")
        #expect(first.email == "user1@test.com")
        #expect(first.createdAtMicros == 1_508_893_925_000_000)
        #expect(first.passwordHash.byteCount == 64)
        #expect(first.salt == [0xE3, 0x6C, 0x44, 0x0B, 0xE8, 0xB1, 0x7F, 0x72, 0xF6, 0x97])
    }

    @Test func `All of a user's fields arrive`() throws {
        let json = #"""
            {"localId":"u1","email":"Zoe@test.com","emailVerified":true,"passwordHash":"-_8","salt":"TmFDbA==",
            "displayName":"Zoë","photoUrl":"https://x.org/1","lastSignedInAt":"1600000000001","createdAt":1600000000000,
            "phoneNumber":"+4930","disabled":true,"customAttributes":"{\"role\":\"x\"}","mfaInfo":[{}],
            "providerUserInfo":[{"providerId":"google.com","rawId":"7","email":"z@g.com","displayName":"Z"}]}
            """#
        let parsed = try FirebaseUser(parsing: [UInt8](json.utf8))
        #expect(
            parsed.user
                == ImportUser(
                    uid: "u1", email: "Zoe@test.com", emailVerified: true, displayName: Text("Zoë"),
                    photoURL: "https://x.org/1", phoneNumber: "+4930", disabled: true,
                    customClaimsJSON: [UInt8](#"{"role":"x"}"#.utf8), createdAtMicros: 1_600_000_000_000_000,
                    lastSignInAtMicros: 1_600_000_000_001_000, passwordHash: Secret([0xFB, 0xFF]),
                    salt: [UInt8]("NaCl".utf8),
                    providers: [
                        ProviderInfo(providerID: "google.com", rawID: "7", email: "z@g.com", displayName: "Z")
                    ]))
        #expect(parsed.ignored.isEmpty)
    }

    @Test(
        arguments: [
            (#"{"localId":7}"#, "localId is no string"),
            (#"{"localId":"u","disabled":"no"}"#, "disabled is no true or false"),
            (#"{"localId":"u","createdAt":"soon"}"#, "createdAt is no number of milliseconds"),
            (#"{"localId":"u","salt":"!"}"#, "salt is no base64"),
            (#"{"localId":"u","providerUserInfo":{}}"#, "providerUserInfo is no array"),
        ])
    func `A user that cannot be sent is rejected with its field`(json: String, message: String) {
        let rejection = #expect(throws: FirebaseUser.Rejection.self) { try FirebaseUser(parsing: [UInt8](json.utf8)) }
        #expect(rejection?.message == message)
        #expect(rejection?.reason == "MALFORMED_ROW")
    }

    @Test func `Rejected rows are named by their place in the file`() {
        var totals = ImportTotals()
        // Rows 1, 4 and 5 of seven are never sent.
        for row in 1...7 as ClosedRange<Int64> {
            totals.readCount = row
            if [1, 4, 5].contains(row) { totals.noteLocalRejection() }
        }
        #expect((0..<4).map { totals.row(ofSent: $0) } == [2, 3, 6, 7])
    }

    @Test func `Counts are the stream's, and must add up to what was read`() {
        var totals = ImportTotals()
        totals.readCount = 1_000
        totals.note(UsersImportResponse(createdCount: 499, rejections: [ImportRejection(index: 3)], checkpoint: 500))
        totals.note(UsersImportResponse(createdCount: 900, replacedCount: 50, skippedCount: 48, checkpoint: 1_000))
        #expect(!totals.isComplete)
        totals.note(
            UsersImportResponse(
                createdCount: 900, replacedCount: 50, skippedCount: 48, rejections: [ImportRejection(index: 999)],
                checkpoint: 1_000))
        #expect(totals.isComplete)
        #expect(totals.summary == "read 1000, created 900, replaced 50, skipped 48, rejected 2")
    }
}

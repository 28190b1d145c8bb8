import Base
import Messages
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// docs/admin.md: its examples compile, and do what the page says.
@Suite struct DocumentationTests {
    @Test func `The examples do what the page says`() async throws {
        try await AdminScene.run { scene in
            let (channel, password) = (scene.channel, Secret("correct horse"))
            let project = ProjectAdmin(channel: channel)  // needs the role project-admin
            try await project.createTenant("acme", settings: TenantSettingsChange { $0.displayName = "Acme" })
            let (_, appKey) = try await project.createApiKey(role: .app, scope: Scope(tenants: .tenantID("acme")))

            let acme = project.tenant("acme")  // tenant-admin is enough: TenantAdmin(channel:tenantID:)
            try await acme.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })

            let ada = try await acme.createUser(email: "ada@example.com", password: password, displayName: "Ada")
            try await acme.updateUser(ada.uid, UserChange(displayName: "", disabled: false))
            try await acme.setCustomUserClaims(ada.uid, json: #"{"role":"editor"}"#)
            try await acme.revokeRefreshTokens(ada.uid)
            let token = try await acme.createCustomToken(ada.uid)  // for Auth.signIn(withCustomToken:)

            for try await user in acme.listUsers() { print(user.uid, user.email) }  // page by page
            let sessions = try await acme.listSessions(ada.uid)

            #expect(!appKey.isEmpty && !token.isEmpty && sessions.isEmpty)
            #expect(try await acme.getUser(ada.uid).displayName.isEmpty)
            try await Self.requireFactors(acme, ada)
            try await Self.findOrCreate(acme)
            try await Self.importRows(acme)
            try await Self.find(acme)
        }
    }

    private static func requireFactors(_ acme: TenantAdmin, _ ada: User) async throws {
        try await acme.updateUser(ada.uid, UserChange(emailVerified: true))
        let mandatory = TenantSettingsChange { $0.secondFactorState = .mandatory }
        let (_, endedCount) = try await acme.updateSettingsEndingSessionsWithoutSecondFactor(mandatory)
        try await acme.addSecondFactor(phoneNumber: "+14155550123", displayName: "work", to: ada.uid)
        #expect(endedCount == 0)
        #expect(try await acme.secondFactors(of: ada.uid).map(\.displayName) == ["work"])
        try await acme.removeAllSecondFactors(from: ada.uid)
        #expect(try await acme.secondFactors(of: ada.uid).isEmpty)
    }

    private static func findOrCreate(_ acme: TenantAdmin) async throws {
        do {
            _ = try await acme.getUserByEmail("bob@example.com")
        } catch {
            guard error.is(.userNotFound) else { throw error }
            try await acme.createUser(email: "bob@example.com")
        }
        #expect(try await acme.getUserByEmail("bob@example.com").email == "bob@example.com")
    }

    private static func find(_ acme: TenantAdmin) async throws {
        try await acme.createUser(uid: "ann", email: "ann@example.com")
        let lastWeek = Timestamp(microseconds: 1)
        let half = UserConditions(emailPart: "ann@exam")  // half an address is enough
        let new = UserConditions(disabled: false, createdFrom: lastWeek, order: .created, descending: true)
        for try await user in acme.queryUsers(new) { print(user.uid) }
        let count = try await acme.countUsers()  // kept with every change, exact
        let (users, notFound, notRead) = try await acme.getUsers([UserName(name: .email("ann@example.com"))])
        #expect(count == 4 && users.map(\.uid) == ["ann"] && notFound.isEmpty && notRead.isEmpty)
        #expect(try await acme.queryUsers(half).all() == users)
    }

    private static func importRows(_ acme: TenantAdmin) async throws {
        let rows = [ImportUser(uid: "c"), ImportUser(uid: "d", email: "no email")]
        let spec: PasswordHashSpec? = nil
        let report = try await acme.importUsers(rows, spec: spec, onConflict: .skip) {
            print($0.checkpoint, "rows are settled")
        }
        for row in report.rejections { print(row.index, row.uid, row.reason) }
        #expect(report.createdCount == 1 && report.rejections.count == 1)
        let checkpoint = 1
        let rest = try await acme.importUsers(rows.dropFirst(checkpoint), spec: spec, onConflict: .skip)
        #expect(rest.rejections.map(\.index) == [0])
    }

    /// This function is only compiled: `HashSpecImportTests` copies users.
    private func copyUsers(_ acme: TenantAdmin, _ old: TenantAdmin) async throws {
        let export = try await old.exportUsers(includingPasswordHashes: true)
        let copied = try await acme.importUsers(exported: export, onConflict: .skip)
        print(copied.createdCount)
    }

    /// This function is only compiled: the loop does not end.
    private func follow(_ acme: TenantAdmin) async throws(Failure) {
        for try await denial in acme.watchDenials() { print(denial.operation, denial.decisionID) }
    }

    @Test func `Every line of the page's code is in this file`() throws {
        let own = try #require(readFile(#filePath))
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let page = try #require(readFile("/\(root)/docs/admin.md"))
        let known = Set(Self.lines(of: own))
        var isCode = false
        var count = 0
        for line in Self.lines(of: page) {
            if line.hasPrefix("```") {
                isCode = line == "```swift"
            } else if isCode, !line.isEmpty, !line.hasPrefix("let channel =") {
                #expect(known.contains(line), "not compiled here: \(line)")
                count += 1
            }
        }
        #expect(count > 20)
    }

    /// The lines of code without comments, and without the spaces at the beginning and before a comment.
    private static func lines(of bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
            let code = line.drop { $0 == " " }
            var characters = Array(code)
            if let comment = characters.indices.first(where: {
                $0 > 0 && characters[$0] == "/" && characters[$0 - 1] == " " && $0 + 1 < characters.count
                    && characters[$0 + 1] == "/"
            }) {
                characters.removeSubrange(comment...)
            }
            while characters.last == " " { characters.removeLast() }
            return String(characters)
        }
    }
}

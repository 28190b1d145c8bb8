import Base
import Crypto
import Messages
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct AccountWritesTests {
    private static let argon2id: Text = {
        let credential = try? PasswordCredential.hash(Secret("password"), profile: .cheap, random: .system)
        return credential?.stored ?? ""
    }()
    private static let bcrypt: Text = "$2b$10$vI8aWBnW3fID.ZQ4/zo1G.q1lRps.9cGLcZEiGDMVr5yUP1KUOYTa"

    private func insert(_ account: Account, in fixture: Fixture) async throws {
        let now = fixture.now
        try await fixture.store.write { try $0.insert(account, origin: .server, now: now) }
    }

    private func replace(_ old: Account, by new: Account, in fixture: Fixture) async throws {
        let now = fixture.now
        try await fixture.store.write {
            try $0.replace(old, by: new, origin: .server, kind: .userUpdated, detail: "x", now: now)
        }
    }

    @Test func anInsertedAccountIsFoundByAllItsNames() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let ada = account("ada", email: "Ada@B.c", phoneNumber: "+14155550123", passwordHash: Self.argon2id)
            try await insert(ada, in: fixture)
            try fixture.store.read { transaction in
                #expect(try transaction.account(UserKey("acme", "ada")) == ada)
                #expect(try transaction.user(UserKey("acme", "ada")) == ada.user)
                let email = try #require(Email(stored: "aDA@b.C"))
                #expect(try transaction.uid(ofEmail: email, tenantID: "acme") == "ada")
                #expect(try transaction.uid(ofEmail: email, tenantID: "other") == nil)
                #expect(try transaction.account(UserKey("other", "ada")) == nil)
            }
            #expect(try fixture.events(of: "acme") == ["userCreated"])
        }
    }

    @Test func aTenantThatIsNotThereTakesNoAccounts() async throws {
        try await withFixture { fixture in
            #expect(await refusal { try await insert(account(), in: fixture) } == "TENANT_NOT_FOUND")
            try await fixture.makeTenant()
            try await fixture.store.write { transaction in
                var record = try transaction.reading.liveTenant("acme")
                record.deleted = true
                try transaction.put(Tables.tenants, TenantPrefix("acme"), record)
            }
            #expect(await refusal { try await insert(account(), in: fixture) } == "TENANT_NOT_FOUND")
        }
    }

    @Test func everyNameIsUniqueWithinItsTenant() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            try await fixture.makeTenant("other")
            let google = ProviderInfo(providerID: "google.com", rawID: "g1")
            let first = account("u1", email: "a@b.c", phoneNumber: "+14155550123", providers: [google])
            try await insert(first, in: fixture)
            let before = try fixture.rows(Tables.users)
            for (wrong, expected) in [
                (account("u1"), "DUPLICATE_LOCAL_ID"), (account("u2", email: "A@B.C"), "EMAIL_EXISTS"),
                (account("u2", phoneNumber: "+14155550123"), "PHONE_NUMBER_EXISTS"),
                (account("u2", providers: [google]), "FEDERATED_USER_ID_ALREADY_LINKED"),
            ] {
                #expect(await refusal { try await insert(wrong, in: fixture) } == expected)
            }
            #expect(try fixture.rows(Tables.users) == before)
            #expect(try fixture.events(of: "acme") == ["userCreated"])
            // The same account in another tenant is another user.
            var foreign = first
            foreign.user.tenantID = "other"
            try await insert(foreign, in: fixture)
            // The same id at another provider is another identity.
            let apple = ProviderInfo(providerID: "apple.com", rawID: "g1")
            try await insert(account("u2", providers: [apple]), in: fixture)
        }
    }

    @Test func aRefusedReplacementChangesNothing() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let (first, second) = (account("u1", email: "a@b.c"), account("u2", email: "x@b.c"))
            try await insert(first, in: fixture)
            try await insert(second, in: fixture)
            let before = (try fixture.rows(Tables.users), try fixture.rows(Tables.userByEmail))
            let taken = account("u2", email: "A@B.c")
            #expect(await refusal { try await replace(second, by: taken, in: fixture) } == "EMAIL_EXISTS")
            #expect(try fixture.rows(Tables.users) == before.0 && fixture.rows(Tables.userByEmail) == before.1)
            // A user's own email in another spelling is no conflict.
            try await replace(first, by: account("u1", email: "A@B.C"), in: fixture)
            #expect(try fixture.events(of: "acme").last == "userUpdated x")
        }
    }

    @Test func removingTakesSessionsAndIndexesAlong() async throws {
        try await withFixture { fixture in
            try await fixture.makeTenant()
            let now = fixture.now
            for uid: Text in ["u1", "u2"] {
                let account = account(uid, email: Text("\(uid)@b.c"), passwordHash: Self.bcrypt)
                try await insert(account, in: fixture)
                try await fixture.store.write { transaction in
                    let session = StoredSession(tenantID: "acme", uid: uid, createdAtMicros: now.microseconds)
                    try transaction.insertSession(
                        session, id: [UInt8](repeating: uid.bytes[1], count: 16), sessionsMax: 100,
                        settings: tenantSettings(), now: now)
                }
            }
            try await fixture.store.write { transaction in
                guard let account = try transaction.reading.account(UserKey("acme", "u1")) else { return }
                try transaction.remove(account, origin: .server, now: now)
            }
            #expect(Array(try fixture.rows(Tables.users).keys) == [UserKey("acme", "u2").bytes])
            #expect(try fixture.rows(Tables.userByEmail).count == 1)
            #expect(Array(try fixture.rows(Tables.sessions).keys) == [[UInt8](repeating: UInt8(ascii: "2"), count: 16)])
            #expect(try fixture.rows(Tables.sessionByUser).count == 1)
            #expect(try fixture.events(of: "acme").last == "userDeleted")
        }
    }

    // MARK: Against a model

    /// What the tables must hold for these accounts.
    private struct Expected: Equatable {
        var users: [[UInt8]: [UInt8]] = [:]
        var emails: [[UInt8]: [UInt8]] = [:]
        var phones: [[UInt8]: [UInt8]] = [:]
        var providers: [[UInt8]: [UInt8]] = [:]
        var hashKinds: [Text: Int64] = [:]

        init() {}

        init(_ accounts: [Account]) throws {
            for account in accounts {
                let (tenant, uid) = (account.user.tenantID, account.user.uid.bytes)
                users[UserKey(tenant, account.user.uid).bytes] = account.record.encoded()
                if let email = Email(stored: account.user.email) {
                    emails[TenantTextKey(tenant, email.canonical).bytes] = uid
                }
                if !account.user.phoneNumber.isEmpty {
                    phones[TenantTextKey(tenant, account.user.phoneNumber).bytes] = uid
                }
                for provider in account.user.providers where !["password", "phone"].contains(provider.providerID) {
                    let hash = Digest.sha256(provider.providerID.bytes + [0] + provider.rawID.bytes)
                    providers[TenantHashKey(tenant, hash).bytes] = uid
                }
                if account.hasPassword {
                    let cost = try PasswordCredential(stored: account.passwordHash).cost
                    hashKinds["\(tenant)/\(cost)".text, default: 0] += 1
                }
            }
        }
    }

    private func present(_ fixture: Fixture) throws -> Expected {
        var present = Expected()
        present.users = try fixture.rows(Tables.users)
        present.emails = try fixture.rows(Tables.userByEmail)
        present.phones = try fixture.rows(Tables.userByPhone)
        present.providers = try fixture.rows(Tables.userByProvider)
        for (key, value) in try fixture.rows(Tables.passwordHashKinds) {
            let name = Text(unchecked: key.map { $0 == 0 ? UInt8(ascii: "/") : $0 })
            present.hashKinds[name] = try StoredCount(decoding: value).count
        }
        return present
    }

    @Test func indexesAreExactAfterAnySequenceOfWrites() async throws {
        var random = SeededRandom.printed()
        try await withFixture { fixture in
            try await fixture.makeTenant("acme")
            try await fixture.makeTenant("acm")
            var model: [UserKey: Account] = [:]
            for step in 0..<600 {
                let candidate = randomAccount(&random)
                let key = UserKey(candidate.user.tenantID, candidate.user.uid)
                let others = model.filter { $0.key != key }.map(\.value)
                let isUnique = !others.contains { Self.conflict($0, candidate) }
                let result: String?
                switch (model[key], random.below(4)) {
                case (nil, _):
                    result = await refusal { try await insert(candidate, in: fixture) }
                    if isUnique { model[key] = candidate }
                case (let old?, 0):
                    let now = fixture.now
                    try await fixture.store.write { try $0.remove(old, origin: .server, now: now) }
                    model[key] = nil
                    result = nil
                case (let old?, 1):
                    result = await refusal { try await insert(candidate, in: fixture) }
                    #expect(result == "DUPLICATE_LOCAL_ID")
                    model[key] = old
                    continue
                case (let old?, _):
                    result = await refusal { try await replace(old, by: candidate, in: fixture) }
                    if isUnique { model[key] = candidate }
                }
                if model[key] == candidate {
                    #expect(result == nil)
                } else if model[key] != nil || result != nil {
                    let reasons = ["EMAIL_EXISTS", "PHONE_NUMBER_EXISTS", "FEDERATED_USER_ID_ALREADY_LINKED"]
                    #expect(result.map(reasons.contains) == true)
                }
                if step.isMultiple(of: 20) {
                    #expect(try present(fixture) == Expected(Array(model.values)), "step \(step)")
                }
            }
            #expect(try present(fixture) == Expected(Array(model.values)))
            for account in model.values {
                try await fixture.store.write { try $0.remove(account, origin: .server, now: .zero) }
            }
            #expect(try present(fixture) == Expected())
        }
    }

    /// Few names, so that they collide; two tenants, one a beginning of the other.
    private func randomAccount(_ random: inout SeededRandom) -> Account {
        let emails: [Text] = ["", "a@b.c", "A@b.c", "b@b.c", "c@b.c", "C@B.C"]
        let phones: [Text] = ["", "", "+14155550001", "+14155550002"]
        let hashes: [Text] = ["", Self.argon2id, Self.bcrypt]
        var providers: [ProviderInfo] = []
        for providerID: Text in ["google.com", "apple.com"] where random.below(3) == 0 {
            providers.append(ProviderInfo(providerID: providerID, rawID: ["1", "2", "3"][random.below(3)]))
        }
        let displayName = Text("name \(random.next())")
        return account(
            ["u", "u1", "u2", "u3"][random.below(4)], tenantID: ["acme", "acm"][random.below(2)],
            email: emails[random.below(emails.count)], phoneNumber: phones[random.below(phones.count)],
            passwordHash: hashes[random.below(hashes.count)], providers: providers
        ) { $0.displayName = displayName }
    }

    private static func conflict(_ left: Account, _ right: Account) -> Bool {
        guard left.user.tenantID == right.user.tenantID else { return false }
        if let email = Email(stored: left.user.email), email == Email(stored: right.user.email) { return true }
        if !left.user.phoneNumber.isEmpty, left.user.phoneNumber == right.user.phoneNumber { return true }
        let federated = left.user.providers.filter { !["password", "phone"].contains($0.providerID) }
        return federated.contains { provider in
            right.user.providers.contains { $0.providerID == provider.providerID && $0.rawID == provider.rawID }
        }
    }
}

extension String {
    fileprivate var text: Text { Text(self) }
}

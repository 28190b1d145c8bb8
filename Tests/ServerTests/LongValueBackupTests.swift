import Base
import Crypto
import Identity
import Messages
import Store
import TestSupport
import Testing

/// Backups of a store with long values, which lie in pieces: whole ones, and one that a damaged disk altered.
@Suite struct LongValueBackupTests {
    private static let templates = (["de", "fr"] as [Text]).map { locale in
        EmailTemplate(
            requestType: .passwordReset, locale: locale, subject: "Neu", text: "%LINK%",
            html: Text("%LINK%" + String(repeating: "x", count: 30_000)))
    }

    private let clock = ManualClock()
    private let masterKey = MasterKey.generate(random: .system)

    /// Makes a tenant whose settings for mail are long. Returns the admin key, and the mark of the settings in the file
    /// without its version and its MAC.
    private func makeTenant(_ data: String) async throws -> (adminKey: Secret, mark: [UInt8]) {
        try await withServer(directory: data, clock: clock, masterKey: masterKey) { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            try client.configureMail(tenantID: "acme", ["templates"]) { $0.templates = Self.templates }
            let (table, key) = (Tables.emailConfigs, TenantPrefix("acme"))
            let found = try server.project.store.read { try $0.withValue(table, key) { [UInt8]($0) } }
            let value = try #require(found)
            let tag = key.bytes.withUnsafeBytes { key in
                value.withUnsafeBytes { RecordMACs(masterKey: masterKey).tag(table: table.id, key: key, value: $0) }
            }
            var mark: [UInt8] = []
            for half in [tag.0, tag.1] { withUnsafeBytes(of: half) { mark.append(contentsOf: $0) } }
            withUnsafeBytes(of: UInt32(value.count).littleEndian) { mark.append(contentsOf: $0) }
            return (server.adminKey, mark)
        }
    }

    private func makeBackup(
        _ data: String, _ adminKey: Secret, to path: String, after change: (TestServer) async throws -> Void
    ) async throws {
        try await withServer(directory: data, clock: clock, masterKey: masterKey, adminKey: adminKey) { server in
            try await change(server)
            writeFile(path, try BackupTests.take(server))
        }
    }

    @Test func `A backup with long values is made, checked and restored`() async throws {
        try await withTemporaryDirectory { directory in
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            let made = try await makeTenant(data)
            try await makeBackup(data, made.adminKey, to: backup) { _ in }
            try await makeBackup(data, made.adminKey, to: "\(directory)/later") { server in
                try IdentityClient(server).configureMail(tenantID: "acme", ["templates"]) { $0.templates = [] }
            }
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let check = try BackupTests.posternd(data, ["--check-backup", backup])
            #expect(check.status == 0 && check.said.contains("The backup is sound"), "\(check.said)")
            let restored = try BackupTests.posternd(data, ["--restore-backup", backup])
            #expect(restored.status == 0, "\(restored.said)")
            let verified = try BackupTests.posternd(data, ["--verify-store"])
            #expect(verified.status == 0, "\(verified.said)")
            try await withServer(
                directory: data, clock: clock, masterKey: masterKey, adminKey: made.adminKey
            ) { server in
                let config = try server.project.emailConfigs.get(tenantID: "acme")
                #expect(config.templates == Self.templates)
            }
        }
    }

    /// As if the disk had returned one other bit. Deleting the tenant deletes all pieces, and its sum is right.
    @Test(arguments: [-17, -1, 16])
    func `A damaged long value goes with its tenant, and the next backup is sound`(_ offset: Int) async throws {
        try await withTemporaryDirectory { directory in
            let (data, backup) = ("\(directory)/data", "\(directory)/backup")
            let made = try await makeTenant(data)
            Self.flipBit(at: offset, of: made.mark, in: "\(data)/data.mdb")
            BackupTests.write(masterKey, to: "\(data)/master-key")
            let damaged = try BackupTests.posternd(data, ["--verify-store"])
            #expect(damaged.status == 65, "\(damaged.said)")
            try await makeBackup(data, made.adminKey, to: backup) { server in
                let _: TenantsDeleteResponse = try server.connect().call(
                    "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
                for _ in 0..<2 { await server.project.sweep() }
            }
            let check = try BackupTests.posternd(data, ["--check-backup", backup])
            #expect(check.status == 0 && check.said.contains("The backup is sound"), "\(check.said)")
            #expect(!check.said.contains("pieces of no value"), "\(check.said)")
        }
    }

    /// Alters each copy that the file has of these bytes, because only one of them is in use.
    private static func flipBit(at offset: Int, of part: [UInt8], in path: String) {
        var file = readFile(path) ?? []
        var foundCount = 0
        for start in file.indices.dropLast(part.count - 1)
        where file[start] == part[0] && file[start..<start + part.count].elementsEqual(part) {
            file[start + offset] ^= 1
            foundCount += 1
        }
        #expect(foundCount > 0)
        writeFile(path, file)
    }
}

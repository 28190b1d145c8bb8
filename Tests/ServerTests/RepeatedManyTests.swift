import Base
import Messages
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// Changes that take several writes: what their repeats and their failures say.
@Suite struct RepeatedManyTests {
    private static let regions =
        """
        AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC
        CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO FR
        """.split { $0 == " " || $0 == "\n" }.map { Text(String($0)) }

    private static func key(_ text: Text) -> [OutgoingMetadata.Entry] {
        [OutgoingMetadata.Entry(key: "idempotency-key", value: text)]
    }

    /// The answer has more fields, and takes more memory, than a request may.
    @Test func `The long answer of a change of many tenants is given again`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for number in 100..<300 {
                // The quotas of changes fill up again.
                if number % 50 == 0 { server.clock.advance(by: .seconds(60)) }
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: Text("shop-\(number)")))
            }
            func update(_ regions: [Text], _ key: Text) throws -> EncodedMessage {
                server.clock.advance(by: .seconds(60))
                var tenant = Messages.Tenant()
                tenant.allowedSMSRegions = regions
                return try client.call(
                    "postern.v1.Tenants/UpdateMany",
                    TenantsUpdateManyRequest(
                        pageSize: 200, filter: TenantFilter(tenantIDPrefix: "shop-"), tenant: tenant,
                        updateMask: ProtobufFieldMask(paths: ["allowed_sms_regions"])),
                    metadata: Self.key(key))
            }
            for (key, regions) in [("k1", Self.regions), ("k2", Array(Self.regions.dropLast()))] as [(Text, [Text])] {
                let first = try update(regions, key)
                #expect(first.messages(TenantsUpdateManyResponse.FieldNumber.results).count == 200)
                let again = try update(regions, key)
                #expect(again == first)
            }
        }
    }

    /// Each of the two finds the users whom the other one has not deleted yet, which may be none.
    @Test func `Users who are deleted twice at once with one key are answered alike`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for round in 0..<10 {
                let uids = (0..<5).map { Text("u\(round)-\($0)") }
                for uid in uids {
                    let _: UsersCreateResponse = try client.call(
                        "postern.v1.Users/Create", UsersCreateRequest(uid: uid))
                }
                let answers = try await atOnce(2) { _ -> UsersBatchDeleteResponse in
                    try server.connect().call(
                        "postern.v1.Users/BatchDelete", UsersBatchDeleteRequest(uids: uids, force: true),
                        metadata: Self.key(Text("k\(round)")))
                }
                let counts = try answers.map { try $0.get().deletedCount }
                #expect(counts == [5, 5])
            }
        }
    }

    @Test func `A failure after earlier writes does not say that nothing was done`() {
        for error in [StoreError.journal(.away), .journal(.behind), .overdue] {
            #expect(Failure(mapping: error).message.contains("nothing was done"))
            let later = Failure(mapping: error.afterEarlierWrites)
            #expect(!later.message.contains("nothing was done") && !later.is(.nodeBehind), "\(later)")
        }
        #expect(StoreError.full.afterEarlierWrites == .full)
    }
}

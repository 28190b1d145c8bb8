import Base
import Messages
import TestSupport
import Testing

/// Settings of mail, SMS and hooks: a change is refused if it was decided over another revision than the present one.
@Suite struct ExpectedRevisionTests {
    private static func updateMail(_ client: RawClient, _ name: Text, expected: Int64) throws -> EmailConfig {
        let changed: EmailConfigsUpdateResponse = try client.call(
            "postern.v1.EmailConfigs/Update",
            EmailConfigsUpdateRequest(
                config: EmailConfig(senderName: name), updateMask: ProtobufFieldMask(paths: ["sender_name"]),
                expectedRevision: expected))
        return changed.config ?? EmailConfig()
    }

    private static func updateSMS(_ client: RawClient, expected: Int64) throws -> Int64? {
        let changed: SmsConfigsUpdateResponse = try client.call(
            "postern.v1.SmsConfigs/Update",
            SmsConfigsUpdateRequest(
                config: SmsConfig(templates: [SmsTemplate(text: "%CODE%")]),
                updateMask: ProtobufFieldMask(paths: ["templates"]), expectedRevision: expected))
        return changed.config?.revision
    }

    private static func updateHooks(_ client: RawClient, expected: Int64) throws -> Int64? {
        let changed: HookConfigsUpdateResponse = try client.call(
            "postern.v1.HookConfigs/Update",
            HookConfigsUpdateRequest(
                config: HookConfig(), updateMask: ProtobufFieldMask(paths: ["before_create"]),
                expectedRevision: expected))
        return changed.config?.revision
    }

    @Test func `The second of two changes over the same revision is refused`() async throws {
        try await withServer { server in
            let client = try server.connect()
            #expect(try Self.updateMail(client, "one", expected: -1).revision == 1)
            // Nobody has changed the settings of the other kinds yet.
            let first = failure { _ = try Self.updateMail(client, "two", expected: -1) }
            #expect(first.reason == "REVISION_MISMATCH" && first.metadata.contains(Failure.Entry("revision", "1")))
            #expect(try Self.updateMail(client, "two", expected: 1).revision == 2)
            #expect(failure { _ = try Self.updateMail(client, "three", expected: 1) }.reason == "REVISION_MISMATCH")
            let any = try Self.updateMail(client, "three", expected: 0)
            #expect(any.revision == 3 && any.senderName == "three")
            for update in [Self.updateSMS, Self.updateHooks] {
                #expect(try update(client, -1) == 1)
                #expect(failure { _ = try update(client, -1) }.reason == "REVISION_MISMATCH")
                #expect(failure { _ = try update(client, 7) }.reason == "REVISION_MISMATCH")
                #expect(try update(client, 1) == 2)
            }
        }
    }
}

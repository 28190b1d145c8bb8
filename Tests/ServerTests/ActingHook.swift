import Base
import Messages
import Reactor
import TestSupport
import Testing

/// A hook of a tenant that does something before it allows what it is asked about.
struct ActingHook {
    let point: WritableKeyPath<HookConfig, Hook?>
    /// The field of `point`, as an update mask names it.
    let field: Text
    let act: @Sendable () throws -> Void

    /// Runs `body` while the default pool has this hook.
    func run(_ admin: IdentityClient, _ body: () throws -> Void) throws {
        let endpoint = FakeHTTPServer { [act] _ in
            do { try act() } catch { Issue.record(error) }
            return .response(HTTPResponse(contentType: "application/json", body: [UInt8](#"{"allow":true}"#.utf8)))
        }
        defer { endpoint.close() }
        let secret = Secret([UInt8](repeating: 7, count: 32))
        var config = HookConfig(allowPrivateAddresses: true)
        config[keyPath: point] = Hook(webhook: WebhookConfig(url: Text(endpoint.url), signingSecret: secret))
        let _: HookConfigsUpdateResponse = try admin.client.call(
            "postern.v1.HookConfigs/Update",
            HookConfigsUpdateRequest(
                config: config, updateMask: ProtobufFieldMask(paths: [field, "allow_private_addresses"])))
        try body()
    }
}

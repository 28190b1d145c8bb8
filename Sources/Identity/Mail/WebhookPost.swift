import Base
import Messages
import Outbound

/// Posts one message to a tenant's webhook. Any thread.
struct WebhookPost: Sendable {
    let resources: Resources
    let http: HTTPClient

    /// `secret` signs the request; without it, nothing is sent. A status that asks for a retry fails the attempt; any
    /// other 4xx refuses it.
    func send(
        _ body: [UInt8], to webhook: WebhookConfig, secret: Secret, allowsPrivateAddresses: Bool, tenantID: Text
    ) async -> DeliveryOutcome {
        guard let url = HTTPURL(webhook.url) else { return .failed("no webhook is configured") }
        guard !secret.isEmpty else { return .failed("the webhook has no secret that can be opened") }
        var request = Webhook.request(
            body, to: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses, at: resources.clock.now())
        // A receiver that has said yes must not get the message again because of what follows.
        request.isBodyNeeded = false
        do {
            let answer = try await http.send(
                request, tenant: tenantID, deadline: Instant.now.advanced(by: .seconds(30)))
            if (200...299).contains(answer.status) { return .sent }
            let isFinal = (400...499).contains(answer.status) && ![408, 409, 425, 429].contains(answer.status)
            let what = Text("the webhook answered \(answer.status)")
            return isFinal ? .refused(what) : .failed(what)
        } catch let error as OutboundError where error != .overloaded {
            return .failed(Text("the webhook: \(error.explanation)"))
        } catch {
            return .overloaded
        }
    }
}

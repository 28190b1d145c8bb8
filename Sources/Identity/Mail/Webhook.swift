import Base
import Crypto
import JSON
import Messages
import Outbound
import Rules

/// The requests to a webhook, and their signature.
enum Webhook {
    static func body(_ message: OutboxMessage, _ contents: OutboxContents, tenantID: Text) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("message_id", text: message.messageID)
        json.member("tenant_id", text: tenantID)
        json.member("request_type", text: Text("\(message.requestType)"))
        json.member("to", text: message.to)
        json.member("subject", text: contents.subject)
        json.member("text", text: contents.text)
        json.member("html", text: contents.html)
        json.member("link", text: contents.link)
        if !contents.notMeLink.isEmpty { json.member("not_me_link", text: contents.notMeLink) }
        json.member("created_at_micros", integer: message.createdAtMicros)
        json.endObject()
        return json.bytes
    }

    static func body(sms message: OutboxMessage, _ contents: OutboxContents, tenantID: Text) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("message_id", text: message.messageID)
        json.member("tenant_id", text: tenantID)
        json.member("channel", text: "sms")
        json.member("purpose", text: Text("\(message.verificationPurpose)"))
        json.member("to", text: message.to)
        json.member("region", text: PhoneNumber(message.to)?.region?.text ?? .empty)
        json.member("text", text: contents.text)
        json.member("code", text: contents.code)
        json.member("created_at_micros", integer: message.createdAtMicros)
        json.endObject()
        return json.bytes
    }

    /// A request with this body of JSON, signed.
    static func request(
        _ body: [UInt8], to url: HTTPURL, secret: Secret, allowsPrivateAddresses: Bool, at now: Timestamp
    ) -> HTTPRequest {
        HTTPRequest(
            url, method: .post(Secret(body)),
            fields: [
                HTTPRequest.Field("Content-Type", "application/json"),
                HTTPRequest.Field("Postern-Signature", signature(of: body, at: now, secret: secret)),
            ],
            policy: .ownServers(allowPrivateAddresses: allowsPrivateAddresses))
    }

    /// `t=<seconds>,v1=<hex of HMAC-SHA256(secret, "<seconds>.<body>")>`
    static func signature(of body: [UInt8], at time: Timestamp, secret: Secret) -> Text {
        let signed = [UInt8]("\(time.seconds).".utf8) + body
        return Text("t=\(time.seconds),v1=\(Hex.encode(HMACKey(secret).tag(of: signed)))")
    }
}

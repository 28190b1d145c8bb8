// Turns google.rpc.Status and its details back into the Failure from which the server made them.

public import Base
public import Messages

extension Failure {
    /// Makes the error of a refused call from the server's status and its details.
    ///
    /// ErrorInfo gives the reason and the metadata, BadRequest the violations, RetryInfo `retryAfter`, LocalizedMessage
    /// and Help the guidance. RequestInfo becomes the metadata entry `request_id`. Unknown and unreadable details are
    /// left out. Without ErrorInfo the reason is the name of the status code.
    public init(_ status: GoogleStatus) {
        let code = StatusCode(rawValue: status.code) ?? .unknown
        self.init(received: code, reason: code.name, status.message.string)
        for detail in status.details { read(detail) }
    }

    /// The value of the first metadata entry with this key. Nil: there is none.
    public func metadataValue(_ key: String) -> String? {
        metadata.first { $0.key == key }?.value
    }

    /// The longest `retryAfter`: callers sleep for it, and no clock goes as far as a server may tell.
    private static let retryAfterMax = Duration.days(365)

    private mutating func read(_ detail: ProtobufAny) {
        switch detail.typeURL.string.split(separator: "/").last {
        case "google.rpc.ErrorInfo":
            guard let info = try? GoogleErrorInfo(decoding: detail.value) else { return }
            reason = info.reason.string
            metadata = info.metadata.map { Entry($0.key.string, $0.value.string) } + metadata
        case "google.rpc.BadRequest":
            guard let request = try? GoogleBadRequest(decoding: detail.value) else { return }
            violations = request.fieldViolations.map {
                FieldViolation(field: $0.field.string, description: $0.description.string)
            }
        case "google.rpc.RetryInfo":
            guard let delay = try? GoogleRetryInfo(decoding: detail.value).retryDelay else { return }
            let told = Duration.seconds(delay.seconds) + .nanoseconds(Int64(delay.nanos))
            retryAfter = min(max(told, .zero), Self.retryAfterMax)
        case "google.rpc.LocalizedMessage":
            guard let localized = try? GoogleLocalizedMessage(decoding: detail.value) else { return }
            guidance = Guidance(
                locale: localized.locale.string, message: localized.message.string, url: guidance?.url ?? "")
        case "google.rpc.Help":
            guard let link = try? GoogleHelp(decoding: detail.value).links.first else { return }
            guidance = Guidance(
                locale: guidance?.locale ?? "", message: guidance?.message ?? "", url: link.url.string)
        case "google.rpc.RequestInfo":
            guard let info = try? GoogleRequestInfo(decoding: detail.value) else { return }
            metadata.append(Entry("request_id", info.requestID.string))
        default: break
        }
    }
}

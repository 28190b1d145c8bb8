import Base
import Identity
import Messages
import Store

extension Failure {
    /// Maps any error to the failure that the caller gets. Nothing internal gets out: an error without a mapping is
    /// INTERNAL.
    init(mapping error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let refused as RefusedCaller: self = refused.failure
        case let error as DecodeError: self = .undecodable(error)
        case let error as StoreError: self = .ofStore(error)
        case is CancellationError:
            self = Failure(.cancelled, "The call was cancelled; whether it took effect is not known.")
        default:
            self = Failure(
                .internal, "The server failed at this call; its log has more under the request id.")
        }
    }

    private static func undecodable(_ error: DecodeError) -> Failure {
        switch error {
        case .malformed: Failure(.malformedMessage, "The message is not valid protobuf.")
        case .duplicate(let field): .invalid(.duplicateField, field: field, "occurs more than once")
        case .limit(let what): Failure(.messageLimit, "The message has too many \(what).")
        case .text(let field): .invalid(.invalidText, field: field, "must be UTF-8 without NUL")
        case .enumValue(let field): .invalid(.invalidEnum, field: field, "has a value this server does not know")
        case .budget: Failure(.messageTooLarge, "Decoding the message takes too much memory.")
        }
    }

    private static func ofStore(_ error: StoreError) -> Failure {
        switch error {
        case .full:
            Failure(
                .storeFull,
                "The server's disk or database is full; reading, deleting and revoking still work.")
        case .overloaded, .readersFull:
            Failure(
                .serverOverloaded, "Too much work is waiting; try again.",
                retryAfter: .milliseconds(500))
        case .keySize:
            Failure(.valueTooLong, "An identifier in the request is longer than any can be.")
        case .corrupt, .damaged, .truncated:
            Failure(.corruptRecord, "A stored record is damaged; the operator must restore it.")
        case .journal(.away):
            Failure(
                .nodeBehind, "The engine of the cluster's journal does not answer; nothing was done, try again later.",
                retryAfter: .milliseconds(500))
        case .journal(.behind):
            Failure(
                .nodeBehind, "This node is far behind its cluster; nothing was done, try again or ask another node.",
                retryAfter: .milliseconds(500))
        case .overdue:
            Failure(.deadlineExceeded, "The deadline passed before the change was made; nothing was done.")
        case .overdueAfterEarlierWrites:
            Failure(
                .deadlineExceeded,
                "The deadline passed after a part of the change was made; repeat it with the same idempotency-key.")
        case .journal(.clockWrong):
            Failure(
                .storeUnavailable,
                "This node's clock is not the cluster's, and it changes nothing until it is; another node answers.")
        case .journal(.outcomeUnknown):
            Failure(
                .storeUnavailable,
                "The cluster's journal was lost meanwhile; whether the call took effect is not known. Repeat a change "
                    + "with the same idempotency-key.")
        default:
            Failure(.storeUnavailable, "The server's database is not available; try again later.")
        }
    }
}

extension Failure {
    /// Whether a node with a newer state might answer otherwise: the subject of the call was missing, old or switched
    /// off.
    var mayBeOutdated: Bool {
        if ground == .request || ground == .clock { return false }
        return switch code {
        case .unauthenticated, .permissionDenied, .notFound, .alreadyExists, .failedPrecondition, .aborted: true
        default: false
        }
    }

    /// Whether a node with another clock might answer otherwise.
    var isByTime: Bool {
        if ground == .clock { return true }
        if self.is(.expiredOOBCode, .apiKeyExpired, .credentialTooOldLoginAgain) { return true }
        // The causes of the refusals of tokens, codes and credentials.
        return metadata.contains { $0.key == "cause" && ($0.value == "EXPIRED" || $0.value == "TIMES") }
    }
}

import Identity
import Messages
import Store

/// postern.v1.Users/ExplainLink
enum UsersExplainLink: FastMethod {
    static func handle(
        _ request: UsersExplainLinkRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersExplainLinkResponse> {
        .message(
            try call.providers.explainLink(
                claimsJSON: request.claimsJSON, providerID: request.providerID, linkingTo: request.uid,
                settings: call.settings, now: call.now, in: transaction))
    }
}

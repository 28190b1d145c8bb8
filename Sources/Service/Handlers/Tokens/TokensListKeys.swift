import Identity
import Messages
import Signing
import Store
import Tokens

/// postern.v1.Tokens/ListKeys
enum TokensListKeys: FastMethod {
    static func handle(
        _ request: TokensListKeysRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TokensListKeysResponse> {
        .message(TokensListKeysResponse(jwksJSON: call.signer(of: request.tokenUse).published.current.jwks))
    }
}

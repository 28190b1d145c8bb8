import Identity
import Messages
import Signing
import Store
import Tokens

/// postern.v1.Project/ListSigningKeys
enum ProjectListSigningKeys: FastMethod {
    static func handle(
        _ request: ProjectListSigningKeysRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListSigningKeysResponse> {
        var keys: [SigningKeyInfo] = []
        for signer in call.signers {
            keys += signer.list()
            keys += try transaction.revokedSigningKeys(for: signer.use)
        }
        return .message(ProjectListSigningKeysResponse(keys: keys))
    }
}

import Identity
import Messages
import Signing
import Store
import Tokens

/// postern.v1.Project/ListSigningKeys
enum ProjectListSigningKeys: FastMethod {
    static func handle(
        _ request: ProjectListSigningKeysRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListSigningKeysResponse> {
        .message(ProjectListSigningKeysResponse(keys: call.project.signer.list() + call.project.cookieSigner.list()))
    }
}

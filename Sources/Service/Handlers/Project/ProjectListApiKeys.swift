import Identity
import Messages
import Store

/// postern.v1.Project/ListApiKeys
enum ProjectListApiKeys: FastMethod {
    static func handle(
        _ request: ProjectListApiKeysRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListApiKeysResponse> {
        let page = try call.page(request)
        var keys = try transaction.apiKeys(after: page.last, limit: page.size + 1)
        var response = ProjectListApiKeysResponse()
        if keys.count > page.size {
            keys.removeLast()
            response.nextPageToken = page.token(after: keys.last?.apiKeyID)
        }
        response.apiKeys = keys
        return .message(response)
    }
}

import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Project/TestPermissions
///
/// It makes the gate's checks of a call, by the same functions. To check all methods takes as long as a page of a list.
enum ProjectTestPermissions: PageMethod {
    private static let methods = {
        var registry = Registry()
        registerAll(&registry)
        return registry.all.map(\.descriptor)
    }()
    private static let methodsByName = Dictionary(
        methods.map { (Text($0.fullName), $0) }, uniquingKeysWith: { first, _ in first })

    static func handle(
        _ request: ProjectTestPermissionsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectTestPermissionsResponse> {
        guard let caller = call.caller else { throw Failure.callerUnauthenticated }
        let countMax = call.limits.administration.methodsTestedMax
        guard request.methods.count <= countMax else {
            throw Failure.invalid(.tooManyItems, field: "methods", "must have at most \(countMax) items")
        }
        let names = request.methods.isEmpty ? methods.map { Text($0.fullName) } : request.methods
        var permissions: [MethodPermission] = []
        for name in names {
            do {
                guard let method = methodsByName[name] else {
                    throw Failure(.unknownMethod, "There is no method of this name.")
                }
                if method.role != .unspecified { try caller.require(method.role) }
                if method.tenant != .unspecified {
                    let tenantID = try caller.tenant(requested: request.tenantID)
                    if method.tenant == .request {
                        try call.settings(of: tenantID, in: transaction).checkOpen(to: caller, for: method)
                    }
                }
                permissions.append(MethodPermission(method: name, allowed: true))
            } catch let failure as Failure {
                permissions.append(
                    MethodPermission(
                        method: name, reason: Text(failure.reason), message: Text(failure.message)))
            }
        }
        return .message(ProjectTestPermissionsResponse(permissions: permissions))
    }
}

public import Base
public import Messages
import Rules

/// Records what self-service toggles refused. The answer is the refusal, even if the record cannot be written.
public struct SelfServiceRefusals: Sendable {
    private let resources: Resources
    private let tenants: TenantDirectory

    init(resources: Resources, tenants: TenantDirectory) {
        self.resources = resources
        self.tenants = tenants
    }

    /// Runs a sign-in or a change; where a toggle refuses it, records that and throws ADMIN_RESTRICTED_OPERATION.
    public func recording<Result>(
        of endUser: RefusedEndUser, _ request: EndUserRequest, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let refused as SelfServiceRefusal {
            throw await failure(by: refused.toggle, of: endUser, request)
        }
    }

    /// Records a refusal and makes the failure that answers it.
    public func failure(by toggle: Toggle, of endUser: RefusedEndUser, _ request: EndUserRequest) async -> Failure {
        let settings = request.settings
        let decisionID = resources.random.alphanumeric(20)
        var denial = Denial()
        denial.timeMicros = resources.clock.now().microseconds
        denial.toggle = toggle
        denial.operation = Text(request.operation)
        denial.decisionID = decisionID
        denial.apiKeyID = request.caller?.id ?? .empty
        denial.peerAddress = request.origin.peerAddress
        denial.endUserIP = (try? request.address())?.text ?? .empty
        denial.uid = endUser.uid
        if let identifier = endUser.email?.canonical ?? (endUser.phoneNumber.isEmpty ? nil : endUser.phoneNumber) {
            denial.identifierHash = tenants.denialIdentifiers.hash(of: identifier.bytes, secret: settings.secret)
        }
        await tenants.tenant(settings.tenantID).record(denial)
        return .adminRestricted(
            toggle: toggle, operation: request.operation, settings: settings, decisionID: decisionID)
    }
}

import Base
import Messages
import PosternClient

/// Counts the users of an import that have second factors, to tell if their tenant asks nobody for one.
struct UnaskedFactors {
    private var userCount = 0

    mutating func note(_ user: ImportUser) {
        if !user.secondFactors.isEmpty { userCount += 1 }
    }

    /// Asks the server for the tenant's setting, if some of the users have second factors. `tenantID`: as the import
    /// named the tenant.
    func tellIfSwitchedOff(_ session: Session, tenantID: Text) async throws {
        guard userCount > 0, !session.output.isQuiet else { return }
        let client = TenantsClient(channel: try session.channel())
        let options = try session.callOptions(withKey: false)
        // The import is done: a question that fails does not make it one that failed.
        guard let tenant = try? await client.get(TenantsGetRequest(tenantID: tenantID), options: options).tenant,
            Self.isSwitchedOff(tenant.secondFactorState)
        else { return }
        session.console.say(Self.message(userCount, tenantID: tenant.tenantID))
    }

    private static func isSwitchedOff(_ state: SecondFactorState) -> Bool {
        state == .disabled || state == .unspecified
    }

    private static func message(_ userCount: Int, tenantID: Text) -> String {
        let command = "postern tenant update \(tenantID.isEmpty ? "" : "\(tenantID) ")--second-factors enabled"
        return
            "\(userCount) of the users have second factors, and \(TenantCommands.title(tenantID)) asks nobody for one: "
            + "\(command) switches them on"
    }
}

import Base
import Identity
import Messages
import Rules

/// postern.v1.EmailConfigs/Test
enum EmailConfigsTest: SlowMethod {
    static func handle(_ request: EmailConfigsTestRequest, _ call: Call) async throws -> EmailConfigsTestResponse {
        if request.to.isEmpty { throw Failure.missingEmail }
        let recipient = try Values.email(
            request.to, field: "to", form: call.settings.emailForm, limits: call.limits)
        return try await call.project.testMail.send(
            to: recipient, settings: call.settings, origin: call.origin, deadline: call.deadline)
    }
}

import Identity
import Messages

/// postern.v1.Users/VerifyHashSpec
enum UsersVerifyHashSpec: SlowMethod {
    static func handle(_ request: UsersVerifyHashSpecRequest, _ call: Call) async throws
        -> UsersVerifyHashSpecResponse
    {
        try await call.project.imports.tryHashSpec(request, call.passwordTurn())
    }
}

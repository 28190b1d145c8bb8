import Base
import Messages
import PosternAdmin
import Testing

/// The methods for API keys besides creating and revoking them.
enum KeyMethods {
    static func call(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let (key, secret) = try await project.createApiKey(role: .app, allowedAddresses: ["127.0.0.0/8"])
        let (rotated, next) = try await recorder.expect("Project/RotateApiKey") {
            try await project.rotateApiKey(key.apiKeyID, overlap: .hours(1))
        }
        #expect(rotated.apiKeyID == key.apiKeyID && rotated.previousSecretUntilMicros > 0 && secret != next)
        #expect(rotated.allowedAddresses == ["127.0.0.0/8"])
        let ended = try await recorder.expect("Project/UpdateApiKey") {
            try await project.endPreviousSecret(of: key.apiKeyID)
        }
        #expect(ended.previousSecretUntilMicros == 0)
    }
}

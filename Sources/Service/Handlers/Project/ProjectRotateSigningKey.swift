import Base
import Crypto
import Identity
import Messages
import Signing

/// postern.v1.Project/RotateSigningKey
enum ProjectRotateSigningKey: SlowMethod {
    static func handle(
        _ request: ProjectRotateSigningKeyRequest, _ call: Call
    ) async throws -> ProjectRotateSigningKeyResponse {
        var algorithm: SigningAlgorithm?
        if !request.algorithm.isEmpty {
            algorithm = SigningAlgorithm(request.algorithm)
            guard algorithm != nil else {
                throw Failure.invalid(.invalidAlgorithm, field: "algorithm", "must be RS256, ES256 or EdDSA")
            }
        }
        let aheadMax = SigningKeyRotation.publishAheadMax.components.seconds
        guard (0...aheadMax).contains(request.publishAheadSeconds) else {
            throw Failure.invalid(.invalidDuration, field: "publish_ahead_seconds", "must be 0 to \(aheadMax)")
        }
        if request.validateOnly {
            try call.project.signingKeys.checkRoomForKey(of: request.tokenUse)
            return ProjectRotateSigningKeyResponse()
        }
        let key = try await call.project.signingKeys.rotate(
            for: request.tokenUse, algorithm: algorithm, publishAhead: .seconds(request.publishAheadSeconds),
            origin: call.origin)
        return ProjectRotateSigningKeyResponse(key: key)
    }
}

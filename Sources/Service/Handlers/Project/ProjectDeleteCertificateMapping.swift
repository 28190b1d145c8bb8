import Identity
import Messages

/// postern.v1.Project/DeleteCertificateMapping
enum ProjectDeleteCertificateMapping: SlowMethod {
    static func handle(
        _ request: ProjectDeleteCertificateMappingRequest, _ call: Call
    ) async throws -> ProjectDeleteCertificateMappingResponse {
        ProjectDeleteCertificateMappingResponse(
            certificateMapping: try await CertificateMappings(resources: call.project.resources).delete(
                id: request.certificateMappingID, validateOnly: request.validateOnly, origin: call.origin))
    }
}

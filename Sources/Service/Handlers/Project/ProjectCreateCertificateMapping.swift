import Identity
import Messages

/// postern.v1.Project/CreateCertificateMapping
enum ProjectCreateCertificateMapping: SlowMethod {
    static func handle(
        _ request: ProjectCreateCertificateMappingRequest, _ call: Call
    ) async throws -> ProjectCreateCertificateMappingResponse {
        ProjectCreateCertificateMappingResponse(
            certificateMapping: try await CertificateMappings(resources: call.project.resources).create(
                request.certificateMapping ?? CertificateMapping(), by: call.caller,
                validateOnly: request.validateOnly, origin: call.origin))
    }
}

public import Base
public import Messages
public import PosternClient

// MARK: - Certificates of clients

extension ProjectAdmin {
    /// Gives the holders of a certificate a role. `mapping` names the certificate by its name and its authority.
    ///
    /// Throws INVALID_CERTIFICATE_MAPPING, CERTIFICATE_MAPPING_EXISTS, TENANT_NOT_FOUND, INVALID_ROLE, INVALID_SCOPE.
    @discardableResult
    public func createCertificateMapping(
        _ mapping: CertificateMapping, options: CallOptions = .init()
    ) async throws(Failure) -> CertificateMapping {
        let request = ProjectCreateCertificateMappingRequest(certificateMapping: mapping)
        return try await required(sendOnce(project.createCertificateMapping, request, options).certificateMapping)
    }

    /// Lists the certificates that have a role.
    public func listCertificateMappings(
        pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<CertificateMapping> {
        Listing { [project] token throws(Failure) in
            let page = try await project.listCertificateMappings(
                ProjectListCertificateMappingsRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.certificateMappings, page.nextPageToken)
        }
    }

    /// Removes the role from the next request on. Streams that were begun with the role end.
    ///
    /// Throws CERTIFICATE_MAPPING_NOT_FOUND.
    @discardableResult
    public func deleteCertificateMapping(
        _ certificateMappingID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> CertificateMapping {
        let request = ProjectDeleteCertificateMappingRequest(certificateMappingID: certificateMappingID)
        return try await required(sendOnce(project.deleteCertificateMapping, request, options).certificateMapping)
    }
}

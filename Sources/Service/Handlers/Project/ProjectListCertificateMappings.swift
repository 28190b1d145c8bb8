import Base
import Identity
import Messages
import Store

/// postern.v1.Project/ListCertificateMappings: those of deleted tenants are left out.
enum ProjectListCertificateMappings: PageMethod {
    static func handle(
        _ request: ProjectListCertificateMappingsRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListCertificateMappingsResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.certificateMappings, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in
            guard let mapping = firstField(StoredCertificateMapping.FieldNumber.certificateMapping, in: row.value),
                try !transaction.isOfDeletedTenant(mapping, scope: CertificateMapping.FieldNumber.scope)
            else { return .skipped }
            return .item(mapping)
        }
        return .list(
            ProjectListCertificateMappingsResponse.FieldNumber.certificateMappings, found.items,
            ProjectListCertificateMappingsResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}

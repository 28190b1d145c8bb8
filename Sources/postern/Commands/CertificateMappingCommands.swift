import Base
import JSON
import Messages
import PosternClient
import TLS

/// postern certificate …: the roles of clients' certificates.
enum CertificateMappingCommands {
    static let all = [map, list, unmap]

    static let map = Command(
        path: ["certificate", "map"], methods: ["Project/CreateCertificateMapping"],
        summary: "Gives the holders of a certificate a role, by the name in it and the authority that issued it.",
        example: "certificate map --uri spiffe://example.org/mailer --issuer ca.pem --role app --all-tenants",
        flags: [
            Flag("uri", "URI", "the certificate's only URI (subjectAltName)"),
            Flag("dns", "NAME", "the only DNS name of a certificate without a URI"),
            Flag("issuer", "FILE", "the certificate of the authority that issues the clients' certificates"),
            Flag("role", "ROLE", "verifier, app, tenant-admin or project-admin"),
            Flag("scope-tenant", "ID", "works for this tenant only; \"\" is the default pool"),
            Flag("all-tenants", "works for all tenants"),
            Flag("display-name", "TEXT", "the name that people see"),
            Flag("trusted-end-user-ip", "the addresses of end users that it names are believed"),
        ] + CallerQuotaFlags.all, isValidatable: true
    ) { session in
        let arguments = session.arguments
        let role = try arguments.role(of: APIKeyCommands.roles)
        let scope = try arguments.scope(for: role)
        let names: [CertificateMapping.Name] =
            (arguments.text("uri").map { [.uri($0)] } ?? []) + (arguments.text("dns").map { [.dnsName($0)] } ?? [])
        guard names.count == 1, let name = names.first else {
            throw CommandError.usage("name the certificate by --uri or by --dns")
        }
        let mapping = CertificateMapping(
            name: name, issuerKeySha256: try issuerKeyHash(arguments), role: role,
            scope: scope, displayName: arguments.text("display-name") ?? .empty,
            trustedEndUserIP: arguments.isSet("trusted-end-user-ip"), quotas: try CallerQuotaFlags(arguments).given)
        let client = ProjectClient(channel: try session.channel())
        let response = try await client.createCertificateMapping(
            .init(certificateMapping: mapping, validateOnly: session.isValidatingOnly), options: session.callOptions())
        session.output.print(response.certificateMapping ?? CertificateMapping())
    }

    private static func issuerKeyHash(_ arguments: Arguments) throws -> Text {
        guard let path = arguments.value("issuer") else { throw CommandError.usage("--issuer is missing") }
        let pem = try File.read(path)
        do throws(TLSError) {
            let certificates = try Certificate.all(pem: pem, countMax: 1)
            return Hex.encode(certificates.first?.keyHash ?? [])
        } catch {
            throw CommandError.usage("\(path): \(error)", hint: "it holds one certificate, in PEM")
        }
    }

    static let list = Command(
        path: ["certificate", "list"], methods: ["Project/ListCertificateMappings"],
        summary: "Lists the certificates that have a role.", example: "certificate list",
        flags: [limitFlag], isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        try await printPages(session) { token, size in
            let request = ProjectListCertificateMappingsRequest(pageSize: size, pageToken: token)
            let page = try await client.listCertificateMappings(request, options: session.callOptions())
            return (page.certificateMappings, page.nextPageToken)
        }
    }

    static let unmap = Command(
        path: ["certificate", "unmap"], methods: ["Project/DeleteCertificateMapping"],
        summary: "Takes the role away from a certificate, everywhere and at once.",
        example: "certificate unmap <certificate-mapping-id>", operands: [.required("certificate-mapping-id")],
        isValidatable: true
    ) { session in
        let id = session.arguments.operands[0]
        try session.confirm("Unmap \(id)? Whoever calls with this certificate alone is refused at once.")
        let client = ProjectClient(channel: try session.channel())
        let response = try await client.deleteCertificateMapping(
            .init(certificateMappingID: Text(id), validateOnly: session.isValidatingOnly),
            options: session.callOptions())
        session.output.print(response.certificateMapping ?? CertificateMapping())
    }
}

extension CertificateMapping: Record {
    static let columns = ["certificate_mapping_id", "uri", "dns_name", "role", "display_name"]

    var id: String { certificateMappingID.string }
}

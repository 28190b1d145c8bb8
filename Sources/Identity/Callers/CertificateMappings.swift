public import Base
import Crypto
public import Messages
public import Rules
import Store

/// Makes, lists and deletes the mappings that give certificates a role.
public struct CertificateMappings: Sendable {
    private let resources: Resources

    public init(resources: Resources) { self.resources = resources }

    /// Makes a mapping. INVALID_ROLE, INVALID_SCOPE, INVALID_DISPLAY_NAME, INVALID_QUOTA, INVALID_CERTIFICATE_MAPPING,
    /// TENANT_NOT_FOUND, CERTIFICATE_MAPPING_EXISTS. `maker`: the caller who makes it.
    public func create(
        _ wanted: CertificateMapping, by maker: Caller?, validateOnly: Bool, origin: Origin
    ) async throws -> CertificateMapping {
        let grant = try Grant(role: wanted.role, scope: wanted.scope)
        try Values.checkDisplayName(wanted.displayName, limits: resources.limits)
        try wanted.quotas?.check()
        let identity = try CertificateIdentity(wanted)
        let now = resources.clock.now()
        var mapping = wanted
        mapping.certificateMappingID = identity.mappingID
        mapping.role = grant.role
        mapping.scope = grant.scope
        mapping.createdAtMicros = now.microseconds
        let made = mapping
        return try await resources.store.write { transaction in
            if let maker { try transaction.reading.requireValid(maker, now: now) }
            return try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                try transaction.reading.checkExists(made.scope)
                let key = TextKey(made.certificateMappingID)
                let present = try transaction.reading.get(Tables.certificateMappings, key)
                let scope = present?.certificateMapping?.scope
                guard try present == nil || transaction.reading.isOfDeletedTenant(scope) else {
                    throw Failure(
                        .certificateMappingExists, "Certificates with this name and authority have a role already.")
                }
                if validateOnly { return made }
                try transaction.put(
                    Tables.certificateMappings, key, StoredCertificateMapping(certificateMapping: made))
                try transaction.appendEvent(
                    .certificateMappingCreated, tenantID: .empty, origin: origin, detail: made.eventDetail, now: now)
                return made
            }
        }
    }

    /// Deletes a mapping: its certificates have no role from the next request on. CERTIFICATE_MAPPING_NOT_FOUND.
    public func delete(id: Text, validateOnly: Bool, origin: Origin) async throws -> CertificateMapping {
        let now = resources.clock.now()
        return try await resources.store.write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                guard
                    let mapping = try transaction.reading.get(Tables.certificateMappings, TextKey(id))?
                        .certificateMapping
                else { throw Failure(.certificateMappingNotFound, "There is no certificate mapping with this id.") }
                if validateOnly { return mapping }
                try transaction.delete(Tables.certificateMappings, TextKey(id))
                try transaction.appendEvent(
                    .certificateMappingDeleted, tenantID: .empty, origin: origin, detail: id, now: now)
                return mapping
            }
        }
    }
}

extension CertificateIdentity {
    /// The identity of a mapping that an administrator wants. INVALID_CERTIFICATE_MAPPING.
    fileprivate init(_ mapping: CertificateMapping) throws(Failure) {
        let name: CertificateIdentity.Name
        switch mapping.name {
        case .uri(let uri): name = .uri(uri)
        case .dnsName(let dnsName): name = .dns(dnsName)
        case nil:
            throw .invalid(.invalidCertificateMapping, field: "name", "must be a URI or a DNS name")
        }
        guard let issuer = Hex.decode(mapping.issuerKeySha256.bytes), issuer.count == 32,
            Hex.encode(issuer) == mapping.issuerKeySha256
        else {
            throw .invalid(
                .invalidCertificateMapping, field: "issuer_key_sha256", "must be 64 hex digits in lower case")
        }
        try self.init(name, issuerKeyHash: issuer)
    }

    /// The id of the mapping, one for each name and authority: the first 128 bits of a SHA-256, in hex.
    var mappingID: Text {
        let (kind, bytes): (UInt8, [UInt8]) =
            switch name {
            case .uri(let uri): (1, uri.bytes)
            case .dns(let dnsName): (2, dnsName.bytes)
            }
        return Hex.encode(Digest.sha256([kind] + issuerKeyHash + bytes).prefix(16))
    }
}

extension ReadTransaction {
    /// The caller that a certificate stands for; nil without a mapping, or for an expired certificate.
    func caller(of certificate: ClientCertificate, now: Timestamp) throws -> Caller? {
        guard now < certificate.expiresAt,
            let stored = try get(Tables.certificateMappings, TextKey(certificate.identity.mappingID)),
            let mapping = stored.certificateMapping
        else { return nil }
        return Caller(mapping, until: certificate.expiresAt)
    }

    /// CALLER_UNAUTHENTICATED once the mapping was deleted or changed, or the certificate expired.
    func requireMapped(_ caller: Caller, mappingID: Text, now: Timestamp) throws {
        guard caller.expiresAt.map({ now < $0 }) ?? false,
            let mapping = try get(Tables.certificateMappings, TextKey(mappingID))?.certificateMapping,
            caller.isStill(mapping)
        else { throw Failure.callerUnauthenticated }
    }
}

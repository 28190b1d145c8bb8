public import Base
public import Messages
import Rules
public import Store

/// The conditions of a query for refusals.
public struct DenialQuery: Sendable {
    public let from: Timestamp
    public let to: Timestamp
    /// The identifier in the form that was hashed when the refusal was written; nil: any.
    private let identifier: [UInt8]?
    private let identifiers: DenialIdentifiers
    /// Nil: any decision.
    private let decisionID: [UInt8]?

    /// INVALID_EMAIL, INVALID_PHONE_NUMBER.
    public init(
        email: Text, phoneNumber: Text, decisionID: Text, fromMicros: Int64, toMicros: Int64,
        identifiers: DenialIdentifiers, limits: Limits
    ) throws(Failure) {
        self.identifiers = identifiers
        self.decisionID = decisionID.isEmpty ? nil : decisionID.bytes
        self.from = Timestamp(microseconds: fromMicros)
        self.to = Timestamp(microseconds: toMicros == 0 ? .max : toMicros)
        if !email.isEmpty {
            self.identifier = try Values.email(email, form: .toFind, limits: limits).canonical.bytes
        } else if !phoneNumber.isEmpty {
            try Values.checkPhoneNumber(phoneNumber)
            self.identifier = phoneNumber.bytes
        } else {
            self.identifier = nil
        }
    }

    /// The hashes that a tenant's refusals of the identifier may have; nil: any.
    fileprivate func hashes(secret: Secret) -> [[UInt8]]? {
        identifier.map { identifiers.possibleHashes(of: $0, secret: secret) }
    }

    fileprivate func isOfDecision(_ bytes: some Sequence<UInt8>) -> Bool { decisionID?.elementsEqual(bytes) ?? true }
}

/// A place in the list of all tenants' refusals: after this refusal of this tenant.
public struct DenialPlace: Sendable {
    let tenantID: Text
    /// 0: after all refusals of the tenant.
    let sequence: Int64

    /// `sequence tenant`: an id has no space in it.
    public var text: Text { Text("\(sequence) \(tenantID)") }

    init(tenantID: Text, sequence: Int64) { (self.tenantID, self.sequence) = (tenantID, sequence) }

    public init?(_ text: Text) {
        let parts = text.bytes.split(separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let sequence = Int64(String(decoding: parts[0], as: UTF8.self)),
            let tenantID = Text(validating: Array(parts[1]))
        else { return nil }
        self.init(tenantID: tenantID, sequence: sequence)
    }
}

extension ReadTransaction {
    /// A page of a tenant's refusals below `sequence` (nil = from the newest), newest first. `secret` is the tenant's.
    public func denials(
        _ query: DenialQuery, tenantID: Text, secret: Secret, before sequence: Int64?, bounds: PageBounds
    ) throws -> StoredPage<SequenceKey> {
        let start = sequence.map { ScanStart.after(SequenceKey(tenantID, $0)) } ?? .first
        let hashes = query.hashes(secret: secret)
        return try page(
            of: Tables.denials, prefix: TenantPrefix(tenantID), from: start, reversed: true, bounds: bounds
        ) { row in
            var time: Int64 = 0
            var (hasIdentifier, hasDecision) = (hashes == nil, query.isOfDecision([]))
            var fields = FieldReader(row.value)
            while let field = try fields.next() {
                switch (field.number, field.value) {
                case (Denial.FieldNumber.timeMicros, .varint(let bits)): time = Int64(bitPattern: bits)
                case (Denial.FieldNumber.identifierHash, .bytes(let bytes)):
                    hasIdentifier = hashes.map { $0.contains { $0.elementsEqual(bytes) } } ?? true
                case (Denial.FieldNumber.decisionID, .bytes(let bytes)): hasDecision = query.isOfDecision(bytes)
                default: break
                }
            }
            if time < query.from.microseconds { return .end }
            return hasIdentifier && hasDecision && time < query.to.microseconds ? .item(row.value) : .skipped
        }
    }

    /// A page of the refusals of all tenants after `place`, in the order of the tenants' ids, newest first for each
    /// tenant.
    public func denialsOfAllTenants(
        _ query: DenialQuery, after place: DenialPlace?, bounds: PageBounds
    ) throws -> (denials: [TenantDenial], last: DenialPlace?) {
        var tenantIDs: [Text] = []
        let first = place.map { place in
            let key = TenantPrefix(place.tenantID)
            return place.sequence == 0 ? ScanStart.after(key) : .at(key)
        }
        try scan(Tables.denialHeads, from: first ?? .first, limit: Self.denialTenantsPerPage) { row in
            tenantIDs.append(try row.key.tenant)
            return true
        }
        var denials: [TenantDenial] = []
        var (rowReadCount, byteCount) = (0, 0)
        for tenantID in tenantIDs {
            guard let record = try get(Tables.tenants, TenantPrefix(tenantID)), !record.deleted else { continue }
            let before = place.flatMap { $0.tenantID == tenantID && $0.sequence != 0 ? $0.sequence : nil }
            let page = try self.denials(
                query, tenantID: tenantID, secret: Secret(record.secret), before: before,
                bounds: PageBounds(bounds, itemMax: bounds.itemMax - denials.count))
            rowReadCount += page.rowReadCount
            for item in page.items {
                byteCount += item.count
                denials.append(TenantDenial(tenantID: tenantID, denial: try Denial(stored: item)))
            }
            if let last = page.last {
                return (denials, DenialPlace(tenantID: tenantID, sequence: last.sequence))
            }
            // The refusals of the next tenant may be a page of their own.
            let isFull = denials.count >= bounds.itemMax || byteCount >= min(bounds.byteMax, bounds.bytesReadMax)
            if isFull || rowReadCount >= bounds.rowsReadMax {
                return (denials, DenialPlace(tenantID: tenantID, sequence: 0))
            }
        }
        let isLast = tenantIDs.count < Self.denialTenantsPerPage
        return (denials, isLast ? nil : tenantIDs.last.map { DenialPlace(tenantID: $0, sequence: 0) })
    }

    private static var denialTenantsPerPage: Int { 100 }
}

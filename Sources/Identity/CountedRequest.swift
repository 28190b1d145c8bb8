import Base
import Messages
import Store

/// The fields of a request's record that say where it was counted.
struct CountedRequest {
    private typealias Fields = StoredIdempotency.FieldNumber

    private(set) var tenantID = Text.empty
    private(set) var subject: [UInt8] = []
    private(set) var caller = Text.empty

    /// Nil when the bytes are not a record.
    fileprivate init?(_ record: UnsafeRawBufferPointer) {
        var fields = FieldReader(record)
        do throws(DecodeError) {
            while let field = try fields.next() {
                switch (field.number, field.value) {
                case (Fields.tenantID, .bytes(let bytes)):
                    guard let text = Text(validating: bytes) else { return nil }
                    tenantID = text
                case (Fields.subject, .bytes(let bytes)): subject = [UInt8](bytes)
                case (Fields.caller, .bytes(let bytes)):
                    guard let text = Text(validating: bytes) else { return nil }
                    caller = text
                default: break
                }
            }
        } catch {
            return nil
        }
    }
}

extension ReadTransaction {
    /// Nil if there is no record. Thousands of records may be due at once, and their answers may be large, so this does
    /// not decode them.
    func countedRequest(_ key: HashKey) throws -> CountedRequest? {
        try withValue(Tables.idempotency, key) { record in
            guard let counted = CountedRequest(record) else {
                throw StoreError.corrupt(table: Tables.idempotency.name.description)
            }
            return counted
        }
    }
}

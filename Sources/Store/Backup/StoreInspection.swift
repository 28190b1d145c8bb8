public import Base

extension Store {
    /// Reads a store that no server has open, and makes and changes no file. Nil if there is no store, or if it is of
    /// an older version.
    public static func inspect<Result>(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash,
        _ body: (borrowing ReadTransaction) throws -> Result
    ) throws -> Result? {
        guard try DataFile(path: DataFile.path(in: configuration.directory)) != nil else { return nil }
        guard
            let environment = try Environment.forInspection(
                configuration, authenticator: authenticator, eventHash: eventHash)
        else { return nil }
        defer { environment.close() }
        return try StoreReader(environment: environment).read(body)
    }
}

extension Environment {
    /// Opens an existing data file only to read it; nil if the store is of an older version.
    static func forInspection(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash
    ) throws(StoreError) -> Environment? {
        let environment = try readOnly(configuration, authenticator: authenticator, eventHash: eventHash)
        // Without long values, the table of their pieces is missed by nobody.
        let needed = Schema.tables(with: configuration.tables).filter { $0.id != Schema.pieces.id }
        guard needed.allSatisfy({ environment.tables.isOpen($0.id) }) else {
            environment.close()
            return nil
        }
        return environment
    }

    /// Opens an existing data file only to read it. It may lack tables.
    static func readOnly(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash
    ) throws(StoreError) -> Environment {
        var configuration = configuration
        configuration.isReadOnly = true
        configuration.createsIfMissing = false
        return try Environment(configuration, authenticator: authenticator, eventHash: eventHash)
    }
}

extension ReadTransaction {
    /// Calls `body` for every event whose number, counted over all tenants, is above `number`.
    public func scanEvents(behind number: UInt64, _ body: (Text, StoredEvent) throws -> Void) throws {
        var last: Text?
        while let tenant = try tenantWithEvents(after: last) {
            last = tenant
            try scanEvents(tenant: tenant, reversed: true) { event in
                guard event.globalSequence > number else { return false }
                try body(tenant, event)
                return true
            }
        }
    }

    /// The number of the newest event of all tenants.
    public var newestEventNumber: UInt64 { get throws(StoreError) { try newestEvent() } }
}

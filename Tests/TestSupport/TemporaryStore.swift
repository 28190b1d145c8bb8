public import Store

/// A record MAC without cryptography: finds accidents, not attackers.
public final class TestAuthenticator: RecordAuthenticator {
    private let seed: UInt64

    public init(seed: UInt64 = 0) { self.seed = seed }

    public func tag(
        table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) -> (UInt64, UInt64) {
        let begin = seed ^ UInt64(table) << 32 ^ UInt64(key.count)
        let first = mix(mix(0xCBF2_9CE4_8422_2325 ^ begin, key), value)
        return (first, mix(mix(0x9E37_79B9_7F4A_7C15 ^ begin, key), value))
    }
}

/// A hash of 32 bytes that depend on every byte of the pieces' concatenation, also without cryptography.
public let testEventHash: EventHash = { pieces in
    (0..<4).flatMap { lane in
        let hash = pieces.reduce(0xCBF2_9CE4_8422_2325 ^ UInt64(lane) << 56) { mix($0, $1) }
        return withUnsafeBytes(of: hash.bigEndian) { [UInt8]($0) }
    }
}

/// FNV-1a with a final shift.
private func mix(_ start: UInt64, _ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash = start
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash ^ hash >> 29
}

/// Opens a store with the test authenticator; the caller closes it.
public func openTestStore(
    at directory: String, tables: [TableDeclaration], _ configure: (inout StoreConfiguration) -> Void = { _ in },
    onFatal: @escaping @Sendable (StoreError) -> Void = { _ in }
) throws -> Store {
    var configuration = StoreConfiguration(directory: directory, tables: tables)
    configuration.mapByteCount = 256 << 20
    configure(&configuration)
    return try Store(
        configuration, authenticator: TestAuthenticator(), eventHash: testEventHash, onFatal: onFatal)
}

/// Runs `body` with a store in a fresh directory; both are gone afterwards.
public func withTemporaryStore<Result>(
    tables: [TableDeclaration], _ configure: (inout StoreConfiguration) -> Void = { _ in },
    _ body: (Store) throws -> Result
) throws -> Result {
    try withTemporaryDirectory { directory in
        let store = try openTestStore(at: directory, tables: tables, configure)
        defer { store.close() }
        return try body(store)
    }
}

public func withTemporaryStore<Result>(
    tables: [TableDeclaration], _ configure: (inout StoreConfiguration) -> Void = { _ in },
    _ body: (Store) async throws -> Result
) async throws -> Result {
    try await withTemporaryDirectory { directory in
        let store = try openTestStore(at: directory, tables: tables, configure)
        defer { close(store) }
        return try await body(store)
    }
}

/// A test may block its thread for the moment that closing takes.
private func close(_ store: Store) { store.close() }

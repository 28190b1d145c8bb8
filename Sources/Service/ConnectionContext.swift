import Base
import Crypto
import Identity
import Store

/// The credentials of a connection: the one of its HELLO, and the one that it used last. Used on the connection's loop
/// only.
final class ConnectionContext {
    /// The credential in HELLO. It counts for requests without a credential of their own.
    var helloAuthorization: [UInt8] = []
    private var cachedAuthorization: [UInt8] = []
    private var cachedCaller: Caller?
    private var cachedVersion: UInt64 = 0

    /// The memory for the id of a request that brought none. The id is used until the next request comes.
    let requestIDScratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RequestID.byteCountMax, alignment: 8)

    deinit { requestIDScratch.deallocate() }

    /// The credential shown last.
    var lastCaller: Caller? { cachedCaller }
    /// The credential this connection counts for.
    var countedCallerID: Text?

    private var keptReader: StoreReader?

    /// The loop's reader, kept so that a call does not have to look for it.
    func reader(of store: Store) throws -> StoreReader {
        if let keptReader { return keptReader }
        let reader = try store.reader()
        keptReader = reader
        return reader
    }

    /// The method (by its place in the registry) and the tenant of the last call: the next one mostly has the same.
    var lastMethod = 0
    private var lastSettings: TenantSettings?
    private var lastSettingsGeneration: UInt64 = 0

    /// The settings that were found for this tenant, while no tenant's settings have changed since.
    func settings(of tenantID: Text, generation: UInt64) -> TenantSettings? {
        guard generation == lastSettingsGeneration, let lastSettings, lastSettings.tenantID == tenantID else {
            return nil
        }
        return lastSettings
    }

    func remember(_ settings: TenantSettings, generation: UInt64) {
        lastSettings = settings
        lastSettingsGeneration = generation
    }

    /// The caller found for exactly these bytes, while no credential has changed since and it has not expired.
    func cached(_ authorization: UnsafeRawBufferPointer, version: UInt64, clock: Clock) -> Caller? {
        guard version == cachedVersion, let cachedCaller, cachedAuthorization.count == authorization.count else {
            return nil
        }
        // The clock is asked only for those that expire.
        if let expiresAt = cachedCaller.expiresAt, clock.now() >= expiresAt { return nil }
        let isSame = cachedAuthorization.withUnsafeBytes { constantTimeEqual($0, authorization) }
        return isSame ? cachedCaller : nil
    }

    func cache(_ caller: Caller, for authorization: UnsafeRawBufferPointer, version: UInt64) {
        cachedAuthorization = [UInt8](authorization)
        cachedCaller = caller
        cachedVersion = version
    }
}

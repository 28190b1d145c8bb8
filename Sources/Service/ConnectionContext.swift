import Base
import Crypto
import Identity
import Rules
import Store

/// The credentials of a connection: the one of its HELLO, and the one that it used last. Used on the connection's loop
/// only.
final class ConnectionContext {
    /// The credential in HELLO. It counts for requests without a credential of their own.
    var helloAuthorization: [UInt8] = []
    /// The identity in the client's certificate. It does not change while the connection lives.
    var certificate: ClientCertificate?
    private var cachedAuthorization: [UInt8] = []
    private var cachedCaller: Dated<Caller>?

    /// The memory for the id of a request that brought none. The id is used until the next request comes.
    let requestIDScratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RequestID.byteCountMax, alignment: 8)

    deinit { requestIDScratch.deallocate() }

    /// The caller of the credential that was shown last.
    var lastCaller: Caller? { cachedCaller?.value }
    /// The id of the caller that this connection is counted for.
    var countedCallerID: Text?

    private var keptReader: StoreReader?

    /// The loop's reader, kept so that a call does not have to look for it.
    func reader(of store: Store) throws -> StoreReader {
        if let keptReader { return keptReader }
        let reader = try store.reader()
        keptReader = reader
        return reader
    }

    private var sharedReader: StoreReader?

    /// Lets the calls of a batch, all of which came in already, read in one transaction. A closed store refuses each
    /// call by itself.
    func beginSharing(_ store: Store) {
        guard let reader = try? reader(of: store) else { return }
        reader.beginSharing()
        sharedReader = reader
    }

    func endSharing() { sharedReader.take()?.endSharing() }

    /// The method (by its place in the registry) and the tenant of the last call: the next one mostly has the same.
    // Proof: the registry, which the router lends this to, knows no connection.
    @exclusivity(unchecked) var lastMethod = 0
    var lastSettings: Dated<TenantSettings>?

    /// The tenant whose calls were counted last, and whether the present call is one of them.
    private var countedPlace: TenantCalls.Place?
    private var isCounted = false
    /// The tenant of a call that may name a tenant that does not exist.
    private var namedTenantID: Text?

    /// The tenant for which the gate admitted the present call.
    var admittedTenantID: Text? { isCounted ? countedPlace?.tenantID : namedTenantID }

    /// A new call came in.
    func forgetAdmittedTenant() {
        isCounted = false
        if namedTenantID != nil { namedTenantID = nil }
    }

    /// The present call is one of this tenant's.
    func noteAdmitted(_ tenantID: Text, countedIn calls: TenantCalls) {
        isCounted = true
        if let countedPlace, countedPlace.tenantID == tenantID, countedPlace.add() { return }
        countedPlace = calls.count(tenantID)
    }

    func noteAdmitted(named tenantID: Text) { namedTenantID = tenantID }

    /// The settings that were found for this tenant, while no tenant's settings have changed since.
    func settings(of tenantID: Text, in tenants: TenantDirectory) -> TenantSettings? {
        guard let lastSettings, tenants.isCurrent(lastSettings), lastSettings.value.tenantID == tenantID else {
            return nil
        }
        return lastSettings.value
    }

    /// The caller found for exactly these bytes, while no credential has changed since and it has not expired.
    func caller(_ authorization: UnsafeRawBufferPointer, of callers: CallerDirectory, clock: Clock) -> Caller? {
        guard let cachedCaller, callers.isCurrent(cachedCaller), cachedAuthorization.count == authorization.count else {
            return nil
        }
        // The clock is read only for credentials that expire.
        if let expiresAt = cachedCaller.value.expiresAt, clock.now() >= expiresAt { return nil }
        let isSame = cachedAuthorization.withUnsafeBytes { constantTimeEqual($0, authorization) }
        return isSame ? cachedCaller.value : nil
    }

    func keep(_ caller: Dated<Caller>, for authorization: UnsafeRawBufferPointer) {
        cachedAuthorization = [UInt8](authorization)
        cachedCaller = caller
    }
}

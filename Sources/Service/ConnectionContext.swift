import Base
import Crypto
import Identity
import Rules
import Store

/// What a connection keeps from one call to the next: its credentials, and the caller, method and tenant of the last
/// call, which the next call mostly has as well. Used on the connection's loop only.
///
/// A call borrows from here and counts no references: the counts of objects that all connections share would move from
/// one processor's cache to another's with every call (docs/decisions/0132).
final class ConnectionContext {
    // Proof for `@exclusivity(unchecked)`: each is read or written in one step, and nothing that happens in that step
    // knows the connection.

    /// The credential in HELLO. It counts for requests without a credential of their own.
    @exclusivity(unchecked) var helloAuthorization: [UInt8] = [] {
        didSet { isLastOfHello = false }
    }
    /// The identity in the client's certificate. It does not change while the connection lives.
    @exclusivity(unchecked) var certificate: ClientCertificate?

    /// The memory for the id of a request that brought none. The id is used until the next request comes.
    let requestIDScratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RequestID.byteCountMax, alignment: 8)

    deinit { requestIDScratch.deallocate() }

    /// The caller that this connection is counted for.
    var countedCaller: Caller?
    /// The method of the last call, by its place in the registry.
    @exclusivity(unchecked) var lastMethod = 0

    // MARK: Reading

    @exclusivity(unchecked) private var keptReader: StoreReader?
    @exclusivity(unchecked) private var sharedReader: StoreReader?

    /// The loop's reader, kept so that a call does not have to look for it.
    func reader(of store: Store) throws -> StoreReader {
        if let keptReader { return keptReader }
        let reader = try store.reader()
        keptReader = reader
        return reader
    }

    /// Lets the calls of a batch, all of which came in already, read in one transaction. A closed store refuses each
    /// call by itself.
    func batchBegins(_ store: Store) {
        guard let reader = try? reader(of: store) else { return }
        reader.beginSharing()
        sharedReader = reader
    }

    /// Lets the rest of the batch read what was committed meanwhile.
    func readAnew() { sharedReader?.readAnew() }

    /// Lets what runs until `resumeSharing` read in transactions of its own. The batch's next read begins a new
    /// snapshot.
    func pauseSharing() { sharedReader?.endSharing() }

    func resumeSharing() { sharedReader?.beginSharing() }

    func batchEnded(countingIn calls: TenantCalls) {
        sharedReader.take()?.endSharing()
        lastEndedAt = nil
        addCalls(to: calls)
    }

    // MARK: The clock

    /// When the last call of this batch ended; nil for the first one, and where calls do not share a snapshot.
    @exclusivity(unchecked) private var lastEndedAt: Instant?

    /// When a call begins. Of calls that came in together, each begins when the one before it has ended: one look at
    /// the clock for both.
    func callBegins() -> Instant { lastEndedAt ?? .now }

    /// When a call ends, in the turn in which it came in.
    func callEnds() -> Instant {
        let now = Instant.now
        if sharedReader != nil { lastEndedAt = now }
        return now
    }

    // MARK: The caller

    @exclusivity(unchecked) private var lastAuthorization: [UInt8] = []
    /// Whether the last credential was that of the HELLO, so that its bytes need no comparison.
    @exclusivity(unchecked) private var isLastOfHello = false
    /// The caller of the credential that was shown last.
    @exclusivity(unchecked) private(set) var lastCaller: Caller?
    @exclusivity(unchecked) private var callerAsOf: Snapshot?
    @exclusivity(unchecked) private var callerPlaces: CallerPlaces?
    @exclusivity(unchecked) private var callerExpiresAt: Timestamp?

    /// Whether `lastCaller` was found for exactly these bytes (nil: the credential of the HELLO), and its credential
    /// has not changed since and has not expired.
    func hasCaller(of authorization: UnsafeRawBufferPointer?, in callers: CallerDirectory) -> Bool {
        guard let callerAsOf, let callerPlaces, callers.isCurrent(asOf: callerAsOf, callerPlaces) else { return false }
        // The clock is read only for credentials that expire.
        if let callerExpiresAt, callers.now >= callerExpiresAt { return false }
        guard let authorization else { return isLastOfHello }
        return lastAuthorization.withUnsafeBytes { constantTimeEqual($0, authorization) }
    }

    func keep(_ caller: Dated<Caller>, for authorization: UnsafeRawBufferPointer?, in callers: CallerDirectory) {
        lastAuthorization = authorization.map { [UInt8]($0) } ?? helloAuthorization
        isLastOfHello = authorization == nil
        lastCaller = caller.value
        callerAsOf = caller.asOf
        callerPlaces = callers.places(of: caller.value, certificate)
        callerExpiresAt = caller.value.expiresAt
    }

    // MARK: The tenant

    @exclusivity(unchecked) private var lastSettings: TenantSettings?
    /// `lastSettings`, to be lent without a count of references.
    @exclusivity(unchecked) private var lentSettings: Unmanaged<TenantSettings>?
    @exclusivity(unchecked) private var settingsAsOf: Snapshot?
    /// `settings.isOpenToAll`; false before there are settings.
    @exclusivity(unchecked) private(set) var isOpenToAll = false
    /// The id of the tenant in `lastSettings`, in memory of this connection's own.
    @exclusivity(unchecked) private(set) var lastTenantID = Text.empty

    /// The settings of the last call's tenant.
    var settings: TenantSettings {
        // Proof: the gate keeps a call's settings before it lets anything ask for them.
        guard let lastSettings else { preconditionFailure("settings are asked for before the gate has kept any") }
        return lastSettings
    }

    /// Lends `settings`. Nothing in `body` keeps settings of another tenant.
    func withSettings<Result>(_ body: (TenantSettings) throws -> Result) rethrows -> Result {
        guard let lentSettings else { return try body(settings) }
        return try lentSettings._withUnsafeGuaranteedRef(body)
    }

    /// Whether `settings` are this tenant's, and no tenant's settings have changed since.
    func hasSettings(of tenantID: Text, in tenants: TenantDirectory) -> Bool {
        guard let settingsAsOf, tenants.isCurrent(asOf: settingsAsOf) else { return false }
        return lastTenantID == tenantID
    }

    func keep(_ settings: Dated<TenantSettings>) {
        lastSettings = settings.value
        lentSettings = .passUnretained(settings.value)
        settingsAsOf = settings.asOf
        isOpenToAll = settings.value.isOpenToAll
        if lastTenantID != settings.value.tenantID {
            lastTenantID = Text(unchecked: settings.value.tenantID.bytes.withUnsafeBytes { [UInt8]($0) })
            hasPlaceOfLastTenant = false
        }
    }

    // MARK: The count of its calls

    /// The place in which the calls of `countedTenantID` are counted, whether that is the last tenant's, and how many
    /// calls are still to be added: those of a batch are added together.
    @exclusivity(unchecked) private var countedPlace: TenantCalls.Place?
    @exclusivity(unchecked) private var countedTenantID = Text.empty
    @exclusivity(unchecked) private var hasPlaceOfLastTenant = false
    @exclusivity(unchecked) private var callsToAdd: UInt64 = 0
    /// Whether the present call is one of the last tenant's.
    @exclusivity(unchecked) private var isCounted = false
    /// The tenant of a call that may name a tenant that does not exist.
    @exclusivity(unchecked) private var namedTenantID: Text?

    /// The tenant for which the gate admitted the present call.
    var admittedTenantID: Text? { isCounted ? countedTenantID : namedTenantID }

    /// A new call came in.
    func forgetAdmittedTenant() {
        isCounted = false
        if namedTenantID != nil { namedTenantID = nil }
    }

    /// The present call is one of the last tenant's.
    func noteAdmitted(countedIn calls: TenantCalls) {
        isCounted = true
        if !hasPlaceOfLastTenant {
            addCalls(to: calls)
            countedPlace = calls.place(of: lastTenantID)
            countedTenantID = lastTenantID
            hasPlaceOfLastTenant = true
        }
        callsToAdd += 1
        if sharedReader == nil { addCalls(to: calls) }
    }

    func noteAdmitted(named tenantID: Text) { namedTenantID = tenantID }

    private func addCalls(to calls: TenantCalls) {
        guard callsToAdd > 0 else { return }
        if countedPlace?.add(callsToAdd) != true { countedPlace = calls.count(countedTenantID, callsToAdd) }
        callsToAdd = 0
    }
}

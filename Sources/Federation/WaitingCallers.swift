import Base

/// The callers that wait for one piece of work, and how many of them each tenant has. Pure.
struct WaitingCallers<Value: Sendable>: Sendable {
    private(set) var promises: [Promise<Value>] = []
    private var counts: [Text: Int] = [:]

    /// The number of callers of one tenant. Callers that stopped waiting count until the work ends.
    static var perTenantMax: Int { 256 }

    /// The promise that a further caller waits for. Nil if its tenant has too many callers here.
    mutating func add(_ tenant: Text) -> Promise<Value>? {
        guard counts[tenant, default: 0] < Self.perTenantMax else { return nil }
        counts[tenant, default: 0] += 1
        let promise = Promise<Value>()
        promises.append(promise)
        return promise
    }
}

package import Base
package import Messages

extension TenantsListDenialsRequest {
    /// Returns the counts of refusals in the request's range, the newest hour first; at most `countMax`. An answer has
    /// a part of them, so `ask`, which calls `Tenants.ListDenials`, is called until the server has no more.
    ///
    /// `PosternAdmin` and the command line tool share this.
    package func allCounts(
        countMax: Int = .max,
        _ ask: (TenantsListDenialsRequest) async throws(Failure) -> TenantsListDenialsResponse
    ) async throws(Failure) -> [DenialCount] {
        var request = self
        // The refusals themselves come with the counts, and are not wanted.
        request.pageSize = 1
        var counts: [DenialCount] = []
        while true {
            let page = try await ask(request)
            counts += page.counts
            let end = page.countsCutBeforeMicros
            // Each answer goes further back, so that this ends whatever a server says.
            guard counts.count < countMax, end > 0, request.toMicros == 0 || end < request.toMicros else { break }
            request.toMicros = end
        }
        return Array(counts.prefix(countMax))
    }
}

import Base
import PosternClient

extension Session {
    /// Runs `watch`, and again whenever the server goes away meanwhile, as long as `canGoOn` says that nothing is
    /// missed. `watch` remembers what it has seen, and continues after it.
    func keepWatching(
        while canGoOn: () -> Bool, _ watch: (CallOptions) async throws -> Void
    ) async throws {
        var options = streamOptions
        while true {
            do {
                return try await watch(options)
            } catch let failure as Failure where failure.code == .unavailable && canGoOn() && !Task.isCancelled {
                say("\(failure.message) Connecting again.")
                options.waitsForConnection = true
                // The channel paces connecting; this paces a server that ends what it just took.
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}

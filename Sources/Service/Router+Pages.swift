import Base
import Identity
import Messages
public import Reactor
import Rules
import Synchronization
public import Transport

extension Router {
    func serve(_ pages: HTTPServer.Routes) { self.pages.withLock { $0 = pages } }

    /// The page of the side port at this path. The metrics tell of all tenants, and many can reach this port, so that
    /// the metrics are only for project-admins.
    public func page(
        _ path: UnsafeRawBufferPointer, authorization: UnsafeRawBufferPointer?, on connection: isolated Connection
    ) -> HTTPResponse? {
        let withoutQuery = UnsafeRawBufferPointer(rebasing: path.prefix { $0 != UInt8(ascii: "?") })
        guard let name = Text(validating: withoutQuery), let page = pages.withLock({ $0[name] }) else { return nil }
        guard name == Instance.metricsPath else { return page() }
        var caller: Caller?
        do {
            caller = try gate.caller(authorization: authorization, context: connection.connectionContext)
            if let caller { try countConnection(connection, of: caller) }
            try caller?.require(.projectAdmin)
            return page()
        } catch {
            let failure = Failure(mapping: error)
            // The failure is noted as for a method: otherwise keys could be tried here without a trace.
            if let caller = caller ?? (error as? RefusedCaller)?.caller {
                note(failure, name.string, by: caller, requestID: .empty)
            }
            return HTTPResponse(refusing: failure)
        }
    }
}

extension HTTPResponse {
    fileprivate init(refusing failure: Failure) {
        self.init(body: [UInt8]("\(failure.message)\n".utf8))
        switch failure.code {
        case .unauthenticated:
            status = 401
            fields = [("WWW-Authenticate", "Bearer")]
        case .permissionDenied: status = 403
        case .resourceExhausted: status = 429
        default: status = 503
        }
    }
}

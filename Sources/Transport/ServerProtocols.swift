import Base

/// Makes the session of each protocol that a server speaks.
struct ServerProtocols: ProtocolChoice {
    let limits: SharedLimits
    let software: Text
    let metrics: TransportMetrics
    let dispatcher: any Dispatcher

    func session(firstByte: UInt8, now: Instant) -> (any ProtocolSession)? {
        switch firstByte {
        case NativeSession.firstByte: NativeSession(limits: limits, software: software, metrics: metrics)
        case GRPCSession.firstByte: GRPCSession(limits: limits, methods: dispatcher, metrics: metrics, now: now)
        default: nil
        }
    }
}

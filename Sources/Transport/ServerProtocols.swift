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
    /// For somebody who tries the port with curl or a browser: the methods of HTTP/1 are in upper-case letters.
    func refusal(firstByte: UInt8) -> [UInt8] {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(firstByte) ? Self.answerToHTTP1 : []
    }

    private static let answerToHTTP1: [UInt8] = {
        let text = "This port speaks HTTP/2 and Postern's protocol: curl --http2-prior-knowledge, or the HTTP port.\n"
        let header = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        return Array("\(header)Content-Length: \(text.utf8.count)\r\n\r\n\(text)".utf8)
    }()
}

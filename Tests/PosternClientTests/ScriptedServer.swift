import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Wire

/// A server that runs a test's script for every connection, each on a thread, and listens on a port of its own. Stop
/// it before the test ends.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (_ peer: ScriptedPeer, _ connection: Int) -> Void

    let port: UInt16
    private let listener: Int32
    private let acceptor = Mutex<OSThread?>(nil)

    var address: String { "127.0.0.1:\(port)" }

    /// With `isListening` false, connections are refused until `start`.
    init(isListening: Bool = true, _ script: @escaping Script) {
        (listener, port) = boundSocket()
        self.script = script
        if isListening { start() }
    }

    private let script: Script

    func start() {
        precondition(listen(listener, 16) == 0, "listen failed")
        let (listener, script) = (listener, script)
        acceptor.withLock {
            $0 = OSThread(name: "acceptor") {
                var threads: [OSThread] = []
                while true {
                    let descriptor = accept(listener, nil, nil)
                    guard descriptor >= 0 else { break }
                    let number = threads.count
                    threads.append(
                        OSThread(name: "peer") {
                            let peer = ScriptedPeer(owning: descriptor)
                            script(peer, number)
                            peer.close()
                        })
                }
                for thread in threads { thread.join() }
            }
        }
    }

    /// Refuses further connections; those that are there go on.
    func stopListening() { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Waits until every script has returned.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        acceptor.withLock { $0.take() }?.join()
        close(listener)
    }
}

/// The server's end of one connection; blocking, used by its script only.
final class ScriptedPeer {
    struct Frame {
        let header: FrameHeader
        let payload: [UInt8]

        var stream: UInt32 { header.stream }
        var type: FrameType { header.type }

        var request: WireRequest { (try? WireRequest(decoding: payload)) ?? WireRequest() }
        var cancelCode: WireCode? { type == .cancel ? try? WireCancel(decoding: payload).code : nil }
    }

    private let descriptor: Int32
    /// Whether `receive` returned nil because the client has closed the connection, and not because it was silent.
    private(set) var isClosedByClient = false
    private var input = ByteBuffer()
    private var decoder = FrameDecoder(payloadHardMax: Limits().framePayloadHardMax)

    init(owning descriptor: Int32) {
        self.descriptor = descriptor
        // A test that waits for a frame that never comes fails instead of hanging.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    fileprivate func close() { _ = Glibc.close(descriptor) }

    /// The next frame; nil when the client has closed the connection, or has been silent for 20 seconds.
    func receive() -> Frame? {
        while true {
            if case .frame(let header, let payload) = decoder.next(in: &input, payloadMax: .max, now: .now) {
                return Frame(header: header, payload: [UInt8](payload))
            }
            let count = recv(descriptor, input.reserve(65_536), 65_536, 0)
            guard count > 0 else {
                isClosedByClient = count == 0 || errno != EAGAIN
                return nil
            }
            input.commit(count)
        }
    }

    /// The next REQUEST; frames before it are skipped.
    func receiveRequest() -> Frame? {
        while let frame = receive() {
            if frame.type == .request { return frame }
        }
        return nil
    }

    func send(_ write: (inout ByteBuffer) -> Void) {
        var output = ByteBuffer()
        write(&output)
        while !output.isEmpty {
            let bytes = output.readable
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            guard count > 0 else { return }
            output.consume(count)
        }
    }

    /// Reads the client's HELLO and answers it.
    @discardableResult
    func greet(streamsMax: UInt32 = 256, window: UInt32 = 0, frameBytesMax: UInt32 = 0) -> WireHello? {
        guard let frame = receive(), frame.type == .hello else { return nil }
        send {
            $0.appendHello(
                WireHello(
                    protocolVersion: 1, frameBytesMax: frameBytesMax, streamsMax: streamsMax, initialWindow: window))
        }
        return try? WireHello(decoding: frame.payload)
    }

    func respond(_ stream: UInt32, _ message: some Message) {
        send { $0.appendResponse(stream: stream) { message.encode(into: &$0) } }
    }

    func refuse(_ stream: UInt32, _ failure: Failure) {
        send { $0.appendFailure(stream: stream, failure) }
    }
}

/// The values that a script saw, for the test to look at after `ScriptedServer.stop`.
final class Recording<Element: Sendable>: Sendable {
    private let storage = Mutex<[Element]>([])

    func append(_ element: Element) { storage.withLock { $0.append(element) } }
    var elements: [Element] { storage.withLock { $0 } }
}

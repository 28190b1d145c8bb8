import Base
import Messages
import Wire

/// A connection as a load loop sees it: bytes of frames in and out. Neither direction blocks.
protocol LoadLink: AnyObject {
    var input: ByteBuffer { get set }
    var output: ByteBuffer { get set }
    /// Nil when no more streams can be opened.
    func takeStream() -> UInt32?
    /// One read into `input`.
    func receive() -> Transfer
    /// Whether there is anything to send.
    var hasOutput: Bool { get }
    /// One write of the output.
    func send() -> Transfer
}

/// The result of a read or a write.
enum Transfer {
    /// 0 from a read is the peer's end.
    case bytes(Int)
    case wouldBlock
    case failed
}

extension LoadLink {
    var hasOutput: Bool { !output.isEmpty }

    /// Hands out the whole frames in `input` and drops them.
    func takeFrames(atMost most: Int = .max, _ body: (FrameHeader, UnsafeRawBufferPointer) -> Void) {
        let bytes = input.readable
        var offset = 0
        var count = 0
        while count < most, let header = FrameHeader.read(UnsafeRawBufferPointer(rebasing: bytes[offset...])) {
            let start = offset + FrameHeader.byteCount
            let end = start + Int(header.payloadByteCount)
            guard end <= bytes.count else { break }
            body(header, UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            offset = end
            count += 1
        }
        input.consume(offset)
    }
}

/// The connections of a load loop, and its clock: sockets and the machine's, or a simulation.
protocol LoadNetwork: AnyObject {
    associatedtype Link: LoadLink
    /// The links, which are known by their indexes.
    var links: [Link] { get }
    /// How many requests a link takes at once.
    var streamsMax: Int { get }

    func now() -> Instant
    /// Waits for links that are ready, at most so long. Returns how many are; `readyLink(at:)` says which.
    func wait(nanoseconds: Int64) throws(BenchError) -> Int
    func readyLink(at index: Int) -> Int
    /// With `forWriting`, room for output wakes the loop as input does.
    func watch(_ link: Int, forWriting: Bool) throws(BenchError)
    /// Called when the link is lost.
    func forget(_ link: Int)
}

/// A link over a socket of its own.
protocol SocketLink: LoadLink {
    var descriptor: Int32 { get }
    /// How many requests the server takes at once.
    var streamsMax: Int { get }
}

/// Connections to a server, watched by an epoll of their own.
final class SocketNetwork<Link: SocketLink>: LoadNetwork {
    let links: [Link]
    private let poll: EventPoll

    /// Opens the connections, one after the other.
    init(connections: Int, connect: () throws(BenchError) -> Link) throws(BenchError) {
        poll = try EventPoll()
        var links: [Link] = []
        for number in 0..<connections {
            let connection = try connect()
            try poll.add(connection.descriptor, number: number)
            links.append(connection)
        }
        self.links = links
    }

    var streamsMax: Int { links.map(\.streamsMax).min() ?? .max }

    func now() -> Instant { .now }

    func wait(nanoseconds: Int64) throws(BenchError) -> Int {
        // A wait that long need not be exact.
        guard nanoseconds < 20_000_000 else {
            return try poll.wait(milliseconds: Int32(clamping: min(nanoseconds / 1_000_000, 50)))
        }
        return try poll.wait(nanoseconds: nanoseconds)
    }

    func readyLink(at index: Int) -> Int { poll.number(at: index) }

    func watch(_ link: Int, forWriting: Bool) throws(BenchError) {
        try poll.watch(links[link].descriptor, number: link, forWriting: forWriting)
    }

    func forget(_ link: Int) { poll.remove(links[link].descriptor) }
}

extension SocketNetwork where Link == Connection {
    /// Opens connections of native frames.
    convenience init(to address: ServerAddress, authorization: Text, connections: Int) throws(BenchError) {
        try self.init(connections: connections) { () throws(BenchError) in
            try Connection(to: address, authorization: authorization)
        }
    }
}

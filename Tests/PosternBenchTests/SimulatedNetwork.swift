import Base
import TestSupport
import Wire

@testable import PosternBench

/// A server whose answers come when a test says, and a clock that goes on only while the loop waits.
final class SimulatedNetwork: LoadNetwork {
    final class Link: LoadLink {
        var input = ByteBuffer()
        var output = ByteBuffer()
        fileprivate var arrived = ByteBuffer()
        fileprivate var isLost = false
        fileprivate var accept: ((UInt32) -> Void)?
        private var nextStream: UInt32 = 1

        func takeStream() -> UInt32? {
            defer { nextStream += 2 }
            return nextStream
        }

        func receive() -> Transfer {
            if isLost { return .bytes(0) }
            let count = arrived.readableByteCount
            guard count > 0 else { return .wouldBlock }
            input.append(contentsOf: arrived.readable)
            arrived.consume(count)
            return .bytes(count)
        }

        func send() -> Transfer {
            let count = output.readableByteCount
            takeSent { accept?($0) }
            return .bytes(count)
        }

        private func takeSent(_ body: (UInt32) -> Void) {
            while let header = FrameHeader.read(output.readable) {
                if header.type == .request { body(header.stream) }
                output.consume(FrameHeader.byteCount + Int(header.payloadByteCount))
            }
        }
    }

    let links: [Link]
    let streamsMax: Int
    let begin = Instant(nanoseconds: 1_000_000_000)
    /// How much later the loop wakes than it asked for, as on a machine that has no time for it.
    var wakesLate = Duration.zero
    /// Whether the request with this number is refused.
    var isRefused: (Int) -> Bool = { _ in false }
    private(set) var requestCount = 0
    private(set) var inFlightMax = 0
    private var inFlight = 0
    private var time: Instant
    private var answers = PendingSteps()
    private var ready: [Int] = []

    /// `answer`: the time at which the request with this number, sent at this time, is answered, both in seconds
    /// after the beginning. Nil closes its connection.
    init(links count: Int, streamsMax: Int = .max, answer: @escaping (Int, Double) -> Double?) {
        links = (0..<count).map { _ in Link() }
        self.streamsMax = streamsMax
        time = begin
        for (index, link) in links.enumerated() {
            link.accept = { [unowned self] stream in
                requestCount += 1
                inFlight += 1
                inFlightMax = max(inFlightMax, inFlight)
                guard let seconds = answer(requestCount, Double(time.nanoseconds(since: begin)) / 1e9) else {
                    links[index].isLost = true
                    return answers.insert(PendingSteps.Step(at: time, place: (index, 0), journey: 0))
                }
                // The step's journey number says what kind of answer it is.
                answers.insert(
                    PendingSteps.Step(
                        at: begin.advanced(byNanoseconds: Int64((seconds * 1e9).rounded())),
                        place: (index, Int(stream)),
                        journey: isRefused(requestCount) ? 1 : 0))
            }
        }
    }

    func now() -> Instant { time }

    func wait(nanoseconds: Int64) -> Int {
        let wake = time.advanced(byNanoseconds: nanoseconds).advanced(by: wakesLate)
        time = max(time, min(wake, answers.first?.at ?? wake))
        var found: Set<Int> = []
        while let answer = answers.first, answer.at <= time, let (link, stream) = answer.place {
            answers.removeFirst()
            found.insert(link)
            guard !links[link].isLost else { continue }
            inFlight -= 1
            if answer.journey == 1 {
                links[link].arrived.appendFailure(
                    stream: UInt32(stream), Failure(.notFound, "USER_NOT_FOUND", "gone"))
            } else {
                links[link].arrived.appendResponse(stream: UInt32(stream)) { $0.append(1) }
            }
        }
        ready = found.sorted()
        return ready.count
    }

    func readyLink(at index: Int) -> Int { ready[index] }
    func watch(_ link: Int, forWriting: Bool) {}
    func forget(_ link: Int) {}
}

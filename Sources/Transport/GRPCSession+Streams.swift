import Base
import Wire

// The objects of streams, and the queues they stand in.

extension GRPCSession {
    func makeStream(_ id: UInt32) -> GRPCStream {
        let stream = spareStreams.popLast() ?? GRPCStream()
        spareByteCount -= stream.bufferCapacity
        stream.begin(id: id, at: now)
        streams[id] = stream
        return stream
    }

    func forget(_ stream: GRPCStream) {
        streams[stream.id] = nil
        if stream.kind == .remoteOpen { openStreams -= 1 }
        dropInput(of: stream)
        dropOutput(of: stream)
        leaveQueues(stream)
        if largeStream === stream { largeEnded() }
        if !incomplete.isEmpty { incomplete.removeAll { $0 === stream } }
        stream.end()
        if handedOut?.stream !== stream { recycle(stream) }
        if isRefusing, streams.isEmpty { notices.append(.close) }
    }

    /// Keeps the object of a stream that has ended for another one, with little memory.
    func recycle(_ stream: GRPCStream) {
        headersByteCount -= stream.headers.capacity
        guard spareStreams.count < Self.sparesMax else { return }
        stream.release()
        // Short messages of many streams, or longer ones of a few, find their memory again.
        if spareByteCount + stream.bufferCapacity > Self.spareByteCountMax { stream.releaseBuffers() }
        spareByteCount += stream.bufferCapacity
        headersByteCount += stream.headers.capacity
        spareStreams.append(stream)
    }

    func releaseIdleMemory() {
        for stream in spareStreams { headersByteCount -= stream.headers.capacity }
        spareStreams = []
        spareByteCount = 0
        answer.releaseIfIdle()
        if streams.isEmpty { streams = [:] }
        if incomplete.isEmpty { incomplete = [] }
        if notices.isEmpty { notices = EventQueue() }
        if waiting.isEmpty { waiting = EventQueue() }
        if largeWaiting.isEmpty { largeWaiting = EventQueue() }
    }

    /// The open streams bound the queues: a place of a stream that is gone would be memory that is not charged to the
    /// client.
    private func leaveQueues(_ stream: GRPCStream) {
        if stream.isLargeWaiting { largeWaiting.removeAll { $0.stream === stream } }
        if stream.isDelivering || stream.isQueued { waiting.removeAll { $0.stream === stream } }
    }
}

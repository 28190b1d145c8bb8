import Base
import Glibc
import Messages
import Wire

/// A channel's work on its loop: takes commands, keeps connections, places calls on them, and watches deadlines.
///
/// Made, run and dropped on the loop's thread.
final class ChannelCore: LoopWork {
    let authorization: Text
    let options: ChannelOptions
    let mailbox: Mailbox
    let journal = JournalMemory()
    private let poller: Poller
    private var commands: [Mailbox.Command] = []
    /// The channel is closed and everything is settled. A socket may have become ready just before.
    private var isClosed = false
    var isTouched = false
    private(set) var wakeUp = Instant.distantFuture
    var generator = SystemRandomNumberGenerator()

    var connections: ConnectionSet
    var balancer: LoadBalancer
    /// The work that workers are doing for this channel.
    var preparations: [Preparation] = []
    var preparationCount = 0
    /// The time at which a further connection for streams may be tried again.
    var nextFurther = Instant.distantFuture
    /// Bidirectional streams that open with their first message.
    var unopened: [Call] = []
    /// The calls that have started and have no stream yet, in order.
    var waiting: [Call] = []
    /// A time at or before the first deadline of all calls. Finding the exact deadline after each answer would cost
    /// more than a needless wake-up now and then.
    var nextDeadline = Instant.distantFuture

    /// The time after a failed attempt from which a waiting call may cause the next attempt.
    private static let attemptInterval = Duration.milliseconds(200)

    init(mailbox: Mailbox, poller: Poller) {
        self.authorization = mailbox.authorization
        self.options = mailbox.options
        self.mailbox = mailbox
        self.poller = poller
        self.connections = ConnectionSet(options.loadBalancing)
        self.balancer = LoadBalancer(mailbox.servers, options)
    }

    func takeCommands(now: Instant) -> Bool {
        isClosed = mailbox.take(into: &commands)
        for command in commands { perform(command, now: now) }
        commands.removeAll(keepingCapacity: true)
        if isClosed {
            settleAll()
            mailbox.ended.succeed(())
        }
        return !isClosed
    }

    func becameReady(key: UInt64, events: Int16, now: Instant) {
        connections.all.first { $0.watchKey == key }?.becameReady(events, now: now)
    }

    func takeTurn(now: Instant) {
        if isClosed { return }
        repeat {
            placeWaiting(now: now)
            for connection in connections.all {
                connection.flush()
                connection.resumeOutboxes()
                connection.flush()
                watch(connection)
            }
        } while removeEnded(now: now)
        wakeUp = findWakeUp()
    }

    // Commands

    private func perform(_ command: Mailbox.Command, now: Instant) {
        switch command {
        case .start(let call):
            nextDeadline = min(nextDeadline, call.deadline)
            if call.request == nil { unopened.append(call) } else { start(call, now: now) }
        case .cancel(let call): cancel(call, .cancelled, .callCancelled)
        case .send(let call, let message, let sent):
            guard !call.isSettled, !call.isFinishing else {
                sent.fail(Failure(.streamClosed, "The stream takes no more messages."))
                return
            }
            if call.request == nil {
                call.requestSent = sent
                open(call, with: message, now: now)
            } else {
                call.outbox.append(Call.OutgoingMessage(message: message, sent: sent))
                if case .open(let connection, _) = call.placement { connection.drainOutbox(of: call) }
            }
        case .finishSending(let call):
            guard call.request != nil else {
                return cancel(call, .cancelled, Failure(.streamClosed, as: .cancelled, "Nothing was sent."))
            }
            call.isFinishing = true
            if case .open(let connection, _) = call.placement { connection.drainOutbox(of: call) }
        case .consumed(let call, let byteCount):
            guard case .open(let connection, let stream) = call.placement else { return }
            connection.consumed(stream: stream, payloadByteCount: byteCount)
        case .prepared(let id, let result): prepared(id, result, now: now)
        }
    }

    private func start(_ call: Call, now: Instant) {
        if waiting.count >= options.waitingCallsMax {
            call.fail(
                Failure(
                    .tooManyWaitingCalls,
                    "\(waiting.count) calls wait for an answer to others; wait before making more."))
        } else if waiting.isEmpty, place(call, now: now) {
            return
        } else {
            call.placement = .waiting
            waiting.append(call)
            if isPatient(call) { balancer.hasten(interval: Self.attemptInterval) }
        }
    }

    private func isPatient(_ call: Call) -> Bool { options.waitsForConnection || call.options.waitsForConnection }

    private func place(_ call: Call, now: Instant) -> Bool {
        connections.open(call, isWelcomedOnly: balancer.hasAlternatives || isPatient(call), now: now)
    }

    private func open(_ call: Call, with message: any Message, now: Instant) {
        call.request = message
        unopened.removeAll { $0 === call }
        start(call, now: now)
    }

    func cancel(_ call: Call, _ code: WireCode, _ failure: Failure) {
        switch call.placement {
        case .open(let connection, let stream): connection.cancel(stream: stream, code, failure)
        case .new, .waiting, .settled: call.fail(failure)
        }
        unopened.removeAll { $0 === call }
    }

    // Connections

    /// Places waiting calls on connections, in order, and connects first if need be. A stream that finds no place does
    /// not hold up the calls behind it.
    private func placeWaiting(now: Instant) {
        waiting.removeAll { $0.isSettled }
        nextFurther = .distantFuture
        connections.setLeavingAside()
        beginConnecting(now: now)
        guard !waiting.isEmpty else { return }
        if connections.taking.isEmpty {
            if let outage = balancer.outage(now: now) { failImpatient(outage) { _ in true } }
            return
        }
        var (isFull, isFullForStreams) = (false, false)
        waiting.removeAll { call in
            guard !isFull, !(isFullForStreams && call.kind != .unary) else { return false }
            if place(call, now: now) { return true }
            if call.kind == .unary { isFull = true } else { isFullForStreams = true }
            return false
        }
        if connections.taking.contains(where: \.isLeaving) { return placeWaiting(now: now) }
        if isFullForStreams, connections.isFullOfStreams { makeRoomForStreams(now: now) }
    }

    private func makeRoomForStreams(now: Instant) {
        let count = connections.taking.count
        if count < options.connectionsMax { return beginFurther(now: now) }
        for call in waiting where call.kind != .unary {
            call.fail(
                Failure(
                    .tooManyStreams,
                    "\(count) connections are full of streams; end some, or use another channel."))
        }
        waiting.removeAll { $0.isSettled }
    }

    func failImpatient(_ failure: Failure, where isConcerned: (Call) -> Bool) {
        for call in waiting where isConcerned(call) && !isPatient(call) { call.fail(failure) }
        waiting.removeAll { $0.isSettled }
    }

    /// Removes ended connections and settles their calls. True: there is more to do before sleeping.
    private func removeEnded(now: Instant) -> Bool {
        var mustGoOn = false
        for connection in connections.all {
            if requeue(connection.takeUnprocessed()) { mustGoOn = true }
            report(connection, now: now)
            guard case .ended(let failure) = connection.phase else {
                if connection.isDone { remove(connection) }
                continue
            }
            remove(connection, failure: failure)
            if !connection.isWelcomed {
                // The calls that get this failure were never sent, unlike those that were on the connection.
                balancer.failed(
                    connection.endpoint, .connectionFailed(failure.message), now: now, using: &generator)
            }
            mustGoOn = mustGoOn || !waiting.isEmpty
        }
        return mustGoOn
    }

    /// Watches a connection for the events that it wants now. A connection that cannot be watched ends.
    private func watch(_ connection: ClientConnection) {
        let events = connection.wantedEvents
        if connection.watchedEvents == events { return }
        let socket = connection.stream.socket.descriptor
        do throws(SystemError) {
            if let key = connection.watchKey {
                try poller.change(socket, events: events, key: key)
            } else {
                connection.watchKey = try poller.watch(socket, events: events, for: self)
            }
            connection.watchedEvents = events
        } catch {
            connection.cannotBeWatched(error)
        }
    }

    private func unwatch(_ connection: ClientConnection) {
        guard let key = connection.watchKey else { return }
        connection.watchKey = nil
        poller.unwatch(connection.stream.socket.descriptor, key: key)
    }

    private func remove(_ connection: ClientConnection, failure: Failure = .channelClosed) {
        unwatch(connection)
        for call in connection.close() { call.fail(failure) }
        connections.remove(connection)
    }

    /// Makes calls that the server did not process wait again. A call fails if messages that it sent are lost.
    private func requeue(_ unprocessed: [Call]) -> Bool {
        for call in unprocessed {
            call.refusalCount += 1
            guard call.refusalCount < call.sendingsMax, !call.hasSentMessages else {
                call.fail(Failure(.refused, "The server did not take the call; try again."))
                continue
            }
            waiting.append(call)
        }
        return !unprocessed.isEmpty
    }

    private func settleAll() {
        for call in waiting + unopened { call.fail(.channelClosed) }
        waiting = []
        unopened = []
        for connection in connections.all { remove(connection) }
    }
}

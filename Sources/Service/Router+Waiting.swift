import Base
import Identity
import Rules
import Store
import Wire

// Calls that outlive the turn they came in: pages, changes and streams. Each runs as a task of its carrier. What they
// have in common is here once: the deadline, the count of the caller's streams, and the outcome.

extension Router {
    /// What is left to do when the call was admitted as far as it can be at once.
    private enum Work: Sendable {
        case page(PreparedPage)
        case change(PreparedChange, Call)
        case stream(PreparedStream, StreamCall)
        /// A bidirectional stream whose request holds no message: its first message passes the gate.
        case unopenedStream(PrepareStream)
    }

    /// Starts a call's task. What can be refused at once is thrown, before there is a task.
    func begin<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, _ body: WaitingBody, caller: Caller?,
        on carrier: isolated Carrier
    ) throws {
        let exchange = Exchange(incoming, of: method, caller: caller, limits: service.project.limits)
        let work = try work(body, incoming, exchange, on: carrier)
        let streamOwner = method.kind == .unary ? nil : caller
        if let streamOwner { try callerUse.openStream(of: streamOwner.id) }
        carrier.run(
            stream: exchange.stream, kind: method.kind, deadline: exchange.deadline, credential: streamOwner,
            requestByteCount: incoming.request.payload.count
        ) { [self] carrier in
            do {
                try await perform(work, exchange, on: carrier)
                succeeded(exchange.method, start: exchange.start)
            } catch {
                exchange.requestID.bytes.withUnsafeBytes {
                    failed(
                        error, exchange.method, stream: exchange.stream, requestID: $0, start: exchange.start,
                        on: carrier)
                }
            }
            if let streamOwner { callerUse.closeStream(of: streamOwner.id) }
        }
    }

    private func work<Carrier: CallCarrier>(
        _ body: WaitingBody, _ incoming: IncomingCall, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> Work {
        let request = incoming.request
        let limits = service.project.limits
        switch body {
        case .page(let prepare): return .page(try prepare(request.payload, limits))
        case .change(let prepare):
            let change = try prepare(request.payload, limits)
            let admission = try admission(requestedTenantID: change.requestedTenantID, exchange, on: carrier)
            var call = Call(
                admission: admission, requestID: exchange.requestID, peerAddress: carrier.peerAddress,
                deadline: exchange.deadline)
            try call.admitChange(request, change.endUser)
            return .change(change, call)
        case .stream(.remoteOpen, let prepare) where request.payload.isEmpty: return .unopenedStream(prepare)
        case .stream(_, let prepare):
            let stream = try prepare(request.payload, limits)
            return .stream(stream, try streamCall(stream, exchange, on: carrier))
        }
    }

    private func streamCall<Carrier: CallCarrier>(
        _ prepared: PreparedStream, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> StreamCall {
        StreamCall(
            admission: try admission(requestedTenantID: prepared.requestedTenantID, exchange, on: carrier),
            requestID: exchange.requestID, peerAddress: carrier.peerAddress)
    }

    private func admission<Carrier: CallCarrier>(
        requestedTenantID: Text?, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> Admission {
        if exchange.deadline <= .now { throw Failure.deadlinePassedBefore }
        let context = carrier.connectionContext
        return try service.project.store.read { transaction in
            try gate.admission(
                requestedTenantID: requestedTenantID, method: exchange.method.descriptor, caller: exchange.caller,
                context: context, in: transaction)
        }
    }
}

// MARK: - In the task

extension Router {
    private func perform<Carrier: CallCarrier>(
        _ work: Work, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        switch work {
        case .page(let page):
            try await carrier.pageTurn(stream: exchange.stream)
            try answer(page, exchange, on: carrier)
        case .change(let change, let call):
            let response = try await call.charging(change.purpose) { try await change.run(call) }
            exchange.withMetadata { metadata in
                carrier.respond(stream: exchange.stream, metadata: metadata) { $0.append(contentsOf: response) }
            }
        case .stream(let stream, let call):
            try await stream.run(call, CallStream(carrier: carrier, number: exchange.stream))
            carrier.endStream(exchange.stream)
        case .unopenedStream(let prepare):
            if let first = try await carrier.nextMessage(stream: exchange.stream) {
                let stream = try first.withUnsafeBytes { try prepare($0, service.project.limits) }
                let call = try streamCall(stream, exchange, on: carrier)
                try await stream.run(call, CallStream(carrier: carrier, number: exchange.stream))
            }
            carrier.endStream(exchange.stream)
        }
    }

    /// Makes a page of a list when it is its turn: in one short transaction that begins after the wait, so that the
    /// page shows what is so then, and no reader of the database waits for a client.
    private func answer<Carrier: CallCarrier>(
        _ page: PreparedPage, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws {
        let read = ReadExchange(
            gate: gate, method: exchange.method.descriptor, caller: exchange.caller,
            context: carrier.connectionContext)
        try exchange.withMetadata { metadata in
            try carrier.respond(stream: exchange.stream, metadata: metadata) { output in
                try read.read(requestedTenantID: page.requestedTenantID, hasWaited: true) { call, transaction in
                    try page.answer(call, transaction, &output)
                }
            }
        }
    }
}

extension Failure {
    fileprivate static let deadlinePassedBefore = Failure(
        .deadlineExceeded, "The deadline had passed before the call began; nothing was done.")
}

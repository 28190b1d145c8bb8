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
        let exchange = Exchange(
            incoming, of: method, caller: caller, limits: service.project.limits, isTraced: callLog.wantsTraces)
        let work = try work(body, incoming, exchange, on: carrier)
        exchange.trace?.note(tenantID: carrier.connectionContext.admittedTenantID)
        let streamOwner = method.kind == .unary ? nil : caller
        if let streamOwner { try callerUse.openStream(of: streamOwner.id) }
        if case .page = work { carrier.awaitsPage() }
        carrier.run(
            stream: exchange.stream, kind: method.kind, deadline: exchange.deadline, credential: streamOwner,
            requestByteCount: incoming.request.payload.count
        ) { [self] carrier in
            do {
                try await traced(work, exchange, on: carrier)
                ended(exchange, failure: nil)
            } catch {
                // The carrier answered a call whose deadline passed, and cancelled it.
                let isLate = error is CancellationError && exchange.deadline <= .now
                let failure = exchange.requestID.bytes.withUnsafeBytes {
                    fail(
                        stream: exchange.stream, with: isLate ? Failure.deadlinePassedDuring : error, exchange.method,
                        by: exchange.caller, requestID: $0, start: exchange.start, on: carrier)
                }
                ended(exchange, failure: failure)
            }
            if let streamOwner { callerUse.closeStream(of: streamOwner.id) }
        }
    }

    private func work<Carrier: CallCarrier>(
        _ body: WaitingBody, _ incoming: IncomingCall, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> Work {
        let request = incoming.request
        let limits = service.limits.messages
        switch body {
        case .page(let prepare): return .page(try prepare(request.payload, limits))
        case .change(let prepare):
            let change = try prepare(request.payload, limits)
            let admission = try admission(requestedTenantID: change.requestedTenantID, exchange, on: carrier)
            var call = Call(
                admission: admission, requestID: exchange.requestID, peerAddress: carrier.peerAddress,
                deadline: exchange.deadline)
            try call.admitChange(request, change.endUser, change.purpose)
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
    /// Performs a call so that what works for it can say how long it took, if anybody wants to know.
    private func traced<Carrier: CallCarrier>(
        _ work: Work, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        guard exchange.trace != nil else { return try await perform(work, exchange, on: carrier) }
        try await CallTrace.$current.withValue(exchange.trace) { try await perform(work, exchange, on: carrier) }
    }

    private func perform<Carrier: CallCarrier>(
        _ work: Work, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        switch work {
        case .page(let page):
            let start = Instant.now
            try await carrier.pageTurn(stream: exchange.stream)
            exchange.trace?.add(queuedNanoseconds: Instant.now.nanoseconds(since: start))
            try answer(page, exchange, on: carrier)
        case .change(let change, let call):
            let response = try await call.charging(change.purpose) { try await change.run(call) }
            exchange.trace?.add(sentByteCount: response.count)
            exchange.withMetadata { metadata in
                carrier.respond(stream: exchange.stream, metadata: metadata) { $0.append(contentsOf: response) }
            }
        case .stream(let stream, let call):
            try await stream.run(call, CallStream(carrier: carrier, number: exchange.stream, trace: exchange.trace))
            carrier.endStream(exchange.stream)
        case .unopenedStream(let prepare):
            if let first = try await carrier.nextMessage(stream: exchange.stream) {
                let stream = try first.withUnsafeBytes { try prepare($0, service.limits.messages) }
                exchange.trace?.add(receivedByteCount: first.count)
                let call = try streamCall(stream, exchange, on: carrier)
                exchange.trace?.note(tenantID: carrier.connectionContext.admittedTenantID)
                try await stream.run(call, CallStream(carrier: carrier, number: exchange.stream, trace: exchange.trace))
            }
            carrier.endStream(exchange.stream)
        }
    }

    /// Makes a page of a list when it is its turn: in one short transaction that begins after the wait, so that the
    /// page shows what is so then, and no reader of the database waits for a client.
    private func answer<Carrier: CallCarrier>(
        _ page: PreparedPage, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws {
        let context = carrier.connectionContext
        context.forgetAdmittedTenant()
        defer { exchange.trace?.note(tenantID: context.admittedTenantID) }
        let read = ReadExchange(
            gate: gate, method: exchange.method.descriptor, caller: exchange.caller, context: context)
        try exchange.withMetadata { metadata in
            try carrier.respond(stream: exchange.stream, metadata: metadata) { output in
                let start = output.readableByteCount
                try read.read(requestedTenantID: page.requestedTenantID, hasWaited: true) { call, transaction in
                    try page.answer(call, transaction, &output)
                }
                exchange.trace?.add(sentByteCount: output.readableByteCount - start)
            }
        }
    }
}

extension Failure {
    fileprivate static let deadlinePassedDuring = Failure(
        .deadlineExceeded, "The call took longer than its deadline; whether it took effect is not known.")

    fileprivate static let deadlinePassedBefore = Failure(
        .deadlineExceeded, "The deadline had passed before the call began; nothing was done.")
}

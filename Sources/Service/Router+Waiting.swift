import Base
import Identity
import Messages
import Rules
import Store
import Wire

// Calls that outlive the turn in which they came in: pages, changes and streams. Each runs as a task of its carrier.
// Their common parts are here: the deadline, the count of the caller's streams, and the outcome.

extension Router {
    /// The work that is left when the call was admitted as far as possible at once.
    enum Work: Sendable {
        /// A call that only reads, and had to wait until the node was at the journal's end.
        case read(FastBody, OwnedRequest)
        /// In a cluster, the request is kept to try again if the node refuses it.
        case page(PreparedPage, OwnedRequest?)
        case change(Call)
        case stream(PreparedStream, StreamCall)
        /// A bidirectional stream whose request holds no message: its first message passes the gate.
        case unopenedStream(PrepareStream)

        /// The memory of the decoded request, with its content, which the work keeps: it may be a dozen times the
        /// request's bytes. 0: the work keeps these bytes themselves, or its first message.
        var memoryByteCount: Int {
            switch self {
            case .page(let page, _): page.memoryByteCount
            case .change(let call): call.change.memoryByteCount
            case .stream(let stream, _): stream.memoryByteCount
            case .read, .unopenedStream: 0
            }
        }

        /// The memory that work which begins at once keeps of a request of so many bytes.
        func heldByteCount(of requestByteCount: Int) -> Int {
            if memoryByteCount == 0 { return requestByteCount }
            if case .page(_, .some) = self { return requestByteCount + memoryByteCount }
            return memoryByteCount
        }
    }

    private enum Start: Sendable {
        case now(Work)
        /// Starts once this node is at the end of the cluster's journal.
        case atEnd(OwnedRequest)

        func heldByteCount(of requestByteCount: Int) -> Int {
            if case .now(let work) = self { work.heldByteCount(of: requestByteCount) } else { requestByteCount }
        }
    }

    /// Starts a call's task. Refusals that are possible at once are thrown before there is a task.
    ///
    /// A node of a cluster lets changes and streams begin at the end of the journal: a switch that was set on any node
    /// before the call was sent binds the call.
    func begin<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, _ body: WaitingBody, caller: Caller?,
        on carrier: isolated Carrier
    ) throws {
        try checkLength(incoming, of: method)
        let exchange = exchange(incoming, of: method, by: caller)
        if try beginsAtEnd(incoming, of: method, body) {
            return try start(.atEnd(try owned(incoming.request)), exchange, on: carrier)
        }
        let work = try work(body, incoming.request, exchange, on: carrier)
        exchange.trace?.note(tenantID: carrier.connectionContext.admittedTenantID)
        try start(.now(work), exchange, on: carrier)
    }

    /// A stream that only the server writes to keeps its request for as long as it lives.
    private func checkLength(_ incoming: IncomingCall, of method: RegisteredMethod) throws {
        let most = service.limits.streamRequestBytesMax
        guard method.kind == .remoteClosed, incoming.request.payload.count > most else { return }
        throw Failure(.frameTooLarge, "The request of such a stream may have \(most) bytes at most; ask for less.")
    }

    private func beginsAtEnd(
        _ incoming: IncomingCall, of method: RegisteredMethod, _ body: WaitingBody
    ) throws -> Bool {
        // Methods for which no credential is needed tell this node's health, and no row of the store. They are answered
        // without the engine, too.
        guard isInCluster, method.descriptor.role != .unspecified else { return false }
        guard case .page = body else { return true }
        if try mustReachEnd(incoming) { return true }
        try requireFresh(for: method.descriptor)
        return false
    }

    private func owned(_ request: RequestEnvelope) throws -> OwnedRequest {
        let freshness = try service.project.store.journalPosition.map { try CallFreshness(request.metadata, at: $0) }
        return OwnedRequest(request, freshness)
    }

    /// Begins a call that only reads once this node has seen the position that the caller names. Returns false if the
    /// node has seen it already.
    func waitsForPosition<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, caller: Caller?, on carrier: isolated Carrier
    ) throws -> Bool {
        guard try mustReachEnd(incoming) else { return false }
        let exchange = exchange(incoming, of: method, by: caller)
        try start(.atEnd(try owned(incoming.request)), exchange, on: carrier)
        return true
    }

    /// Tries a call again that this node refused before it was at the end of the journal: the key, user or session that
    /// it did not find may have been made on another node a moment ago. Returns nil if the call goes on, otherwise the
    /// error to answer: the refusal itself, or NODE_BEHIND if strangers ask too much. Any caller with a token of an
    /// unknown key counts as a stranger.
    func answersAtEnd<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, caller: Caller?, refused error: any Error,
        on carrier: isolated Carrier
    ) -> (any Error)? {
        guard isInCluster else { return error }
        let failure = Failure(mapping: error)
        guard failure.mayBeOutdated else { return error }
        guard mayAsk(for: failure.ground == .unknownKey ? nil : caller) else {
            return Failure.nodeBehind.resting(on: .strangers)
        }
        let again = exchange(incoming, of: method, by: caller)
        do {
            try start(.atEnd(try owned(incoming.request)), again, on: carrier)
            return nil
        } catch {
            return error
        }
    }

    private func exchange(_ incoming: IncomingCall, of method: RegisteredMethod, by caller: Caller?) -> Exchange {
        Exchange(
            incoming, of: method, caller: caller, timeoutMax: service.project.limits.requestTimeoutMax,
            isTraced: callLog.wantsTraces)
    }

    private func start<Carrier: CallCarrier>(
        _ start: Start, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws {
        let (method, caller) = (exchange.method, exchange.caller)
        let streamOwner = method.kind == .unary ? nil : caller
        let isOfEndUser = method.descriptor.role == .app
        if let streamOwner { try callerUse.openStream(of: streamOwner, ofEndUser: isOfEndUser) }
        if case .now(.page) = start { carrier.awaitsPage() }
        // If the task's work begins at once, it runs within the batch. It must not read the batch's snapshot, which may
        // be older than a watch that it begins, and than what it waits for: its own write, or the journal's end.
        carrier.connectionContext.pauseSharing()
        defer { carrier.connectionContext.resumeSharing() }
        carrier.run(
            stream: exchange.stream, kind: method.kind, deadline: exchange.deadline, credential: streamOwner,
            requestID: exchange.requestID, requestByteCount: start.heldByteCount(of: exchange.requestByteCount)
        ) { [self] carrier in
            do {
                switch start {
                case .now(let work): try await traced(work, exchange, on: carrier)
                case .atEnd(let request): try await performAtEnd(request, exchange, on: carrier)
                }
                ended(exchange, failure: nil, on: carrier.loop)
            } catch {
                // The carrier answered a call whose deadline passed, and cancelled it.
                let isLate = error is CancellationError && exchange.deadline <= .now
                let failure = exchange.requestID.bytes.withUnsafeBytes {
                    fail(
                        stream: exchange.stream, with: isLate ? Failure.deadlinePassedDuring : error, exchange.method,
                        by: exchange.caller, requestID: $0, start: exchange.start, on: carrier)
                }
                ended(exchange, failure: failure, on: carrier.loop)
            }
            if let streamOwner { callerUse.closeStream(of: streamOwner, ofEndUser: isOfEndUser) }
        }
    }

    private func work<Carrier: CallCarrier>(
        _ body: WaitingBody, _ request: RequestEnvelope, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> Work {
        let limits = service.limits.messages
        switch body {
        case .page(let prepare):
            return .page(try prepare(request.payload, limits), isInCluster ? try owned(request) : nil)
        case .change(let prepare):
            let change = try prepare(request.payload, limits)
            let admission = try admission(requestedTenantID: change.requestedTenantID, exchange, on: carrier)
            let call = Call(
                change, admission, requestID: exchange.requestID, peerAddress: carrier.peerAddress,
                deadline: exchange.deadline,
                idempotency: try admission.admitChange(request, change.endUser, change.purpose))
            return .change(call)
        case .stream(.remoteOpen, let prepare) where request.payload.isEmpty: return .unopenedStream(prepare)
        case .stream(_, let prepare):
            let stream = try prepare(request.payload, limits)
            return .stream(stream, try streamCall(stream, exchange, on: carrier))
        }
    }

    /// Identifies and admits a call again, as if it came in now. A stream goes on with the credential that it came
    /// with, because the credential watch knows no other.
    private func workAtEnd<Carrier: CallCarrier>(
        _ request: RequestEnvelope, _ owned: OwnedRequest, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> (Work, Caller?) {
        let method = exchange.method
        let context = carrier.connectionContext
        context.forgetAdmittedTenant()
        let known = exchange.caller
        var exchange = exchange
        exchange.caller = try identify(request, for: method, context, on: carrier)
        do throws(Failure) {
            try exchange.caller?.require(method.descriptor.role)
        } catch {
            if known == nil, let caller = exchange.caller {
                note(error, method.descriptor.fullName, by: caller, requestID: exchange.requestID)
            }
            throw error
        }
        if method.kind != .unary, exchange.caller?.id != known?.id { throw Failure.nodeWasBehind }
        switch method.body {
        case .fast(let body): return (.read(body, owned), exchange.caller)
        case .waiting(let body):
            let work = try work(body, request, exchange, on: carrier)
            exchange.trace?.note(tenantID: context.admittedTenantID)
            // A refusal at the journal's end is final.
            if case .page(let page, _) = work { return (.page(page, nil), exchange.caller) }
            return (work, exchange.caller)
        }
    }

    func streamCall<Carrier: CallCarrier>(
        _ prepared: PreparedStream, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws -> StreamCall {
        StreamCall(
            try admission(requestedTenantID: prepared.requestedTenantID, exchange, on: carrier),
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
    /// A function of its own, so that a call that begins at once keeps no memory for this.
    func performAtEnd<Carrier: CallCarrier>(
        _ request: OwnedRequest, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        try await reachEnd(for: request.freshness, exchange.caller)
        // The wait does not end when the client goes. A connection that is closed must not be counted for a caller,
        // because nothing would end that.
        try Task.checkCancellation()
        var exchange = exchange
        let work: Work
        (work, exchange.caller) = try request.withEnvelope { try workAtEnd($0, request, exchange, on: carrier) }
        if case .page = work { carrier.awaitsPage() }
        var more = work.memoryByteCount
        if case .stream = work {
            request.release()
            more -= exchange.requestByteCount
        }
        carrier.holds(stream: exchange.stream, byteCount: max(0, more))
        try await traced(work, exchange, on: carrier)
    }

    /// Performs a call with its trace, if there is one, so that the parts that work for the call can add their times.
    private func traced<Carrier: CallCarrier>(
        _ work: Work, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        guard exchange.trace != nil else { return try await perform(work, exchange, on: carrier) }
        try await CallTrace.$current.withValue(exchange.trace) { try await perform(work, exchange, on: carrier) }
    }
}

extension Failure {
    fileprivate static let deadlinePassedDuring = Failure(
        .deadlineExceeded, "The call took longer than its deadline; whether it took effect is not known.")

    /// A stream whose credential this node learned of only now.
    fileprivate static let nodeWasBehind = Failure(
        .nodeBehind, "This node did not know the credential yet; open the stream again.")

    fileprivate static let deadlinePassedBefore = Failure(
        .deadlineExceeded, "The deadline had passed before the call began; nothing was done.")
}

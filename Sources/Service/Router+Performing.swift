import Base
import Rules
import Store
import Wire

// The work in the tasks of waiting calls. Each kind is a function of its own, so that a waiting call keeps room only
// for its own kind's needs: thousands wait at a time.

extension Router {
    func perform<Carrier: CallCarrier>(
        _ work: Work, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        switch work {
        case .read(let body, let request): try answer(body, request, exchange, on: carrier)
        case .page(let page, let request): try await makePage(page, request, exchange, on: carrier)
        case .change(let call): try await perform(call, exchange, on: carrier)
        case .stream(let stream, let call):
            try await run(stream, call, exchange, on: carrier)
            carrier.endStream(exchange.stream)
        case .unopenedStream(let prepare): try await open(prepare, exchange, on: carrier)
        }
    }

    private func makePage<Carrier: CallCarrier>(
        _ page: PreparedPage, _ request: OwnedRequest?, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        let start = Instant.now
        try await carrier.pageTurn(stream: exchange.stream, line: exchange.caller.line)
        exchange.trace?.add(queuedNanoseconds: Instant.now.nanoseconds(since: start))
        do {
            try answer(page, exchange, on: carrier)
        } catch {
            guard let request, Failure(mapping: error).mayBeOutdated else { throw error }
            try await performAtEnd(request, exchange, on: carrier)
        }
    }

    private func perform<Carrier: CallCarrier>(
        _ call: Call, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        if call.change.isLong { try await carrier.workTurn(line: exchange.caller.line) }
        let response = try await call.charging(call.change.purpose) { try await call.change.run(call) }
        exchange.trace?.add(sentByteCount: response.count)
        exchange.withMetadata(position: position(after: exchange.method.descriptor)) { metadata in
            carrier.respond(stream: exchange.stream, metadata: metadata) { $0.append(contentsOf: response) }
        }
    }

    /// A stream that begins with its first message.
    private func open<Carrier: CallCarrier>(
        _ prepare: PrepareStream, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        if let stream = try await firstMessage(prepare, exchange, on: carrier) {
            // The message may have come long after the stream was opened, and is admitted only now.
            if isInCluster { try await reachEnd(for: nil, exchange.caller) }
            let call = try streamCall(stream, exchange, on: carrier)
            exchange.trace?.note(tenantID: carrier.connectionContext.admittedTenantID)
            try await run(stream, call, exchange, on: carrier)
        }
        carrier.endStream(exchange.stream)
    }

    private func run<Carrier: CallCarrier>(
        _ stream: PreparedStream, _ call: StreamCall, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws {
        let callStream = callStream(exchange, on: carrier)
        try await call.running { try await stream.run(call, callStream) }
    }

    /// A function of its own, so that nobody keeps the bytes of the message.
    private func firstMessage<Carrier: CallCarrier>(
        _ prepare: PrepareStream, _ exchange: Exchange, on carrier: isolated Carrier
    ) async throws -> PreparedStream? {
        guard let bytes = try await carrier.nextMessage(stream: exchange.stream) else { return nil }
        try await carrier.workTurn(line: exchange.caller.line)
        exchange.trace?.add(receivedByteCount: bytes.count)
        return try bytes.withUnsafeBytes { try prepare($0, service.limits.messages) }
    }

    private func callStream<Carrier: CallCarrier>(_ exchange: Exchange, on carrier: isolated Carrier) -> CallStream {
        CallStream(carrier: carrier, number: exchange.stream, trace: exchange.trace, line: exchange.caller.line)
    }

    private func answer<Carrier: CallCarrier>(
        _ body: FastBody, _ request: OwnedRequest, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws {
        let context = carrier.connectionContext
        defer { exchange.trace?.note(tenantID: context.admittedTenantID) }
        let read = ReadExchange(gate: gate, caller: exchange.caller, context: context)
        try exchange.withMetadata { metadata in
            try carrier.respond(stream: exchange.stream, metadata: metadata) { output in
                try request.withEnvelope { try body($0.payload, exchange.method.descriptor, read, &output) }
            }
        }
    }

    /// Makes a page of a list when it is its turn: in one short transaction that begins after the wait, so that the
    /// page shows the state of that moment, and no reader of the database waits for a client.
    private func answer<Carrier: CallCarrier>(
        _ page: PreparedPage, _ exchange: Exchange, on carrier: isolated Carrier
    ) throws {
        let context = carrier.connectionContext
        context.forgetAdmittedTenant()
        defer { exchange.trace?.note(tenantID: context.admittedTenantID) }
        let read = ReadExchange(gate: gate, caller: exchange.caller, context: context)
        try exchange.withMetadata { metadata in
            try carrier.respond(stream: exchange.stream, metadata: metadata) { output in
                let start = output.readableByteCount
                try read.read(
                    exchange.method.descriptor, requestedTenantID: page.requestedTenantID, hasWaited: true
                ) { call, transaction in
                    try page.answer(call, transaction, &output)
                }
                exchange.trace?.add(sentByteCount: output.readableByteCount - start)
            }
        }
    }
}

// docs/bench-result.schema.json describes this JSON, and a test compares both.

import Base
import JSON

extension RunResult {
    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("version", .integer(Self.version)), .init("started_at_microseconds", .integer(startedAt)),
            .init("configuration", .object(configuration)), .init("host", .object(host)),
            .init("server_software", .string(Text(serverSoftware))), .init("hashes", .string(Text(hashes.name))),
            .init("seconds", .double(seconds)), .init("interrupted", .bool(isInterrupted)),
            .init("failure", failure.map { .string(Text($0)) } ?? .null),
            .init("generator_limited", .bool(isGeneratorLimited)),
            .init("warnings", .array(warnings.map { .string(Text($0)) })),
            .init("verdicts", .array(verdicts.map(\.json))),
            .init("achieved_per_second", .double(achieved)),
            .init("target_per_second", target.map { .double($0) } ?? .null), .init("error_share", .double(errorShare)),
            .init("operations", .array(operations.map(json(of:)))),
            .init("connections_lost", .integer(Int64(connectionsLost))),
            .init("generator_cpu_share", .double(generatorCPUShare)),
            .init("generator_threads", .integer(Int64(generatorThreads))),
            .init("busiest_thread_cpu_share", .double(busiestThreadShare)),
            .init("other_cpu_share", .double(otherCPUShare)),
        ]
        if let journeysBegun { members.append(.init("journeys_begun", .integer(Int64(journeysBegun)))) }
        if isOpenLoop {
            members.append(.init("sent_late", .integer(Int64(sentLate))))
            members.append(.init("not_sent", .integer(Int64(notSentCount))))
            members.append(.init("not_sent_reasons", Self.json(of: notSent)))
            members.append(.init("own_lag_microseconds", Self.percentiles(of: ownLag)))
            members.append(.init("own_lag_histogram", Self.encoded(ownLag)))
        }
        if let server {
            members.append(
                .init(
                    "server",
                    .object([
                        .init("cpu_share", .double(serverCPUShare ?? 0)),
                        .init("cpu_microseconds_per_request", .double(cpuMicrosecondsPerRequest ?? 0)),
                        .init("resident_bytes", .integer(Int64(server.residentByteCount))),
                        .init("anonymous_bytes", .integer(Int64(server.anonymousByteCount))),
                    ])))
        }
        members.append(.init("slice_seconds", .integer(Int64(sliceSeconds))))
        members.append(.init("series", .array(series.map(Self.json(of:)))))
        return .object(members)
    }

    /// The JSON with line breaks. Histograms and the series are most of it.
    var encoded: [UInt8] { json.prettyPrinted() + [UInt8(ascii: "\n")] }

    private func json(of operation: Operation) -> JSONValue {
        let record = operation.record
        var histograms: [JSONValue.Member] = []
        for (name, histogram) in [
            ("response", record.response), ("service", record.service), ("schedule_lag", record.scheduleLag),
        ] where !histogram.isEmpty {
            histograms.append(.init(Text(name), Self.encoded(histogram)))
        }
        var members: [JSONValue.Member] = [
            .init("name", .string(Text(operation.name))), .init("requests_per_second", .double(rate(of: operation))),
            .init("ok", .integer(Int64(record.okCount))), .init("errors", Self.json(of: record.errors)),
            .init("latency_microseconds", Self.percentiles(of: record.response)),
        ]
        if !record.service.isEmpty {
            members.append(.init("service_microseconds", Self.percentiles(of: record.service)))
            members.append(.init("schedule_lag_microseconds", Self.percentiles(of: record.scheduleLag)))
        }
        members.append(.init("histograms", .object(histograms)))
        let failures = record.failures.sorted { $0.key < $1.key }
        members.append(
            .init("failure_histograms", .object(failures.map { .init(Text($0.key), Self.encoded($0.value)) })))
        return .object(members)
    }

    private static func json(of slice: Slice) -> JSONValue {
        .object([
            .init("sent", .integer(Int64(slice.sentCount))), .init("in_flight", .integer(Int64(slice.inFlight))),
            .init("target_per_second", slice.target.map { .double($0) } ?? .null),
            .init("server_cpu_share", slice.serverCPUShare.map { .double($0) } ?? .null),
            .init("machine_cpu_share", slice.machineCPUShare.map { .double($0) } ?? .null),
            .init(
                "operations",
                .array(
                    slice.operations.sorted { $0.key < $1.key }.map { name, record in
                        .object([
                            .init("name", .string(Text(name))), .init("errors", json(of: record.errors)),
                            .init("histogram", encoded(record.response)),
                        ])
                    })),
        ])
    }

    static func json(of counts: [String: Int]) -> JSONValue {
        .object(counts.sorted { $0.key < $1.key }.map { .init(Text($0.key), .integer(Int64($0.value))) })
    }

    static let shares: [(name: StaticString, share: Double)] = [
        ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("max", 1),
    ]

    private static func percentiles(of histogram: Histogram) -> JSONValue {
        var members = shares.map { name, share in
            JSONValue.Member(Text(stringLiteral: name), .double(Double(histogram.value(atShare: share)) / 1000))
        }
        members.append(.init("mean", .double(histogram.mean / 1000)))
        return .object(members)
    }

    /// The encoded histogram, and beside it the values that the encoding leaves out.
    private static func encoded(_ histogram: Histogram) -> JSONValue {
        .object([
            .init("count", .integer(Int64(clamping: histogram.count))),
            .init("max", .integer(Int64(clamping: histogram.maximum))), .init("mean", .double(histogram.mean)),
            .init("hdr", .string(Text(Base64.standard.encodeToString(histogram.encoded())))),
        ])
    }
}

import Base
import JSON

extension HTMLReport {
    var plots: String {
        let drawn = [throughput, latencyOverTime, latencyOverRate, serverCPUs, spectrum, errors].map(\.svg).joined()
        return "<div class=\"plots\">\(drawn)</div>"
    }

    /// The end of each slice, in seconds.
    private func time(_ number: Int) -> Double { Double((number + 1) * result.sliceSeconds) }

    private func points(_ value: (RunResult.Slice) -> Double?) -> [(x: Double, y: Double)] {
        result.series.enumerated().compactMap { number, slice in
            isShown(slice) ? value(slice).map { (time(number), $0) } : nil
        }
    }

    /// After the end of a schedule only late answers come: they would look like a breakdown.
    private func isShown(_ slice: RunResult.Slice) -> Bool { !result.isOpenLoop || slice.target != nil }

    private var throughput: Plot {
        let seconds = Double(result.sliceSeconds)
        var series = [Plot.Series(name: "answered well", points: points { Double($0.okCount) / seconds })]
        if result.isOpenLoop { series.insert(Plot.Series(name: "asked for", points: points { $0.target }), at: 0) }
        return Plot(title: "Throughput", xLabel: "seconds", yLabel: "requests a second", series: series)
    }

    private var latencyOverTime: Plot {
        let series = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)].map { name, share in
            Plot.Series(
                name: name,
                points: points { slice in
                    let response = slice.response
                    return response.isEmpty ? nil : Double(response.value(atShare: share)) / 1e6
                })
        }
        return Plot(
            title: "Response time, of all methods", xLabel: "seconds", yLabel: "milliseconds", yScale: .logarithmic,
            series: series)
    }

    /// The further right, the rarer: 90 percent, 99, 99.9 at the same distance.
    private var spectrum: Plot {
        let labels = ["0", "90%", "99%", "99.9%", "99.99%", "99.999%", "99.9999%"]
        var ticks: [(at: Double, label: String)] = []
        for (power, label) in labels.enumerated() { ticks.append((Self.power(power), label)) }
        let series = result.operations.filter { !$0.record.response.isEmpty }.flatMap { operation in
            var series = [Plot.Series(name: operation.name, points: Self.spectrum(of: operation.record.response))]
            if !operation.record.service.isEmpty {
                series.append(
                    Plot.Series(
                        name: "\(operation.name), service time", points: Self.spectrum(of: operation.record.service)))
            }
            return series
        }
        return Plot(
            title: "Percentiles of response times", xLabel: "percentile", yLabel: "milliseconds", xScale: .logarithmic,
            yScale: .logarithmic, xTicks: ticks, series: series)
    }

    private static func power(_ power: Int) -> Double { (0..<power).reduce(1.0) { value, _ in value * 10 } }

    /// Ten points for each power of ten, until one request is left.
    private static func spectrum(of histogram: Histogram) -> [(x: Double, y: Double)] {
        var points: [(x: Double, y: Double)] = []
        var rarity = 1.0
        while rarity <= Double(histogram.count), points.count < 100 {
            points.append((rarity, Double(histogram.value(atShare: 1 - 1 / rarity)) / 1e6))
            rarity *= 1.25892541179
        }
        return points
    }

    private var latencyOverRate: Plot {
        let seconds = Double(result.sliceSeconds)
        let shown = result.series.filter { isShown($0) && !$0.response.isEmpty }
        func rate(_ slice: RunResult.Slice) -> Double { slice.target ?? Double(slice.okCount) / seconds }
        var series = [("p50", 0.5), ("p99", 0.99)].map { name, share in
            Plot.Series(
                name: name, style: .points,
                points: shown.map { (rate($0), Double($0.response.value(atShare: share)) / 1e6) })
        }
        if let objective, let first = shown.map(rate).min(), let last = shown.map(rate).max(), first < last {
            let bound = objective.bound / 1e6
            series.append(Plot.Series(name: objective.description, points: [(first, bound), (last, bound)]))
        }
        return Plot(
            title: "Response time against rate",
            xLabel: result.isOpenLoop ? "requests a second asked for" : "answers a second", yLabel: "milliseconds",
            yScale: .logarithmic, series: series)
    }

    /// The first bound of a latency of all operations that was asked for.
    private var objective: Objective? {
        let asked = result.configuration.first { $0.name == "objectives" }?.value.string
        let texts = asked.map { [$0] } ?? result.verdicts.map(\.objective)
        return texts.lazy.flatMap { text in
            (try? Objective.parse(text, operations: result.operations.map(\.name), isOpenLoop: true)) ?? []
        }.first { if case .latency(.response, _) = $0.metric { $0.operation == nil } else { false } }
    }

    private var serverCPUs: Plot {
        Plot(
            title: "CPUs of the server", xLabel: "seconds", yLabel: "CPUs",
            series: [Plot.Series(name: "server", points: points { $0.serverCPUShare })])
    }

    private var errors: Plot {
        let seconds = Double(result.sliceSeconds)
        return Plot(
            title: "Failed answers", xLabel: "seconds", yLabel: "a second",
            series: [Plot.Series(name: "failed", points: points { Double($0.errorCount) / seconds })])
    }
}

extension RunResult.Slice {
    var okCount: Int { operations.values.reduce(0) { $0 + Int(clamping: $1.response.count) } }
    var errorCount: Int { operations.values.reduce(0) { $0 + $1.errorCount } }

    /// The response times of all operations together.
    var response: Histogram {
        var all = Histogram()
        for record in operations.values { all.merge(record.response) }
        return all
    }
}

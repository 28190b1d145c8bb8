import Base
import JSON

/// A result as one HTML file: tables, and plots as SVG. It needs no network, and has no script.
struct HTMLReport {
    let result: RunResult
    /// How many results were merged into it.
    let generatorCount: Int

    var text: String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><title>\(HTML.escaped(title))</title>
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <style>\(Self.style)</style></head><body>
        <h1>\(HTML.escaped(title))</h1>
        \(summary)\(notes)\(rateTable)\(operationTable)
        \(plots)
        \(failureTable)\(configurationTable)
        </body></html>

        """
    }

    private var title: String {
        let mix = result.configuration.first { $0.name == "mix" }?.value.string ?? ""
        return "postern-bench: \(mix)"
    }

    private var summary: String {
        let tiles = SearchResult(result).map(searchTiles) ?? runTiles
        return "<div class=\"tiles\">" + tiles.map { "<div><b>\($0.0)</b>\($0.1)</div>" }.joined() + "</div>\n"
    }

    private var runTiles: [(String, String)] {
        var tiles = [("\(decimal(result.achieved, places: 0))/s", "answered well")]
        if let target = result.target {
            let what = result.journeysBegun == nil ? "asked for on average" : "journeys asked for on average"
            tiles.append(("\(decimal(target, places: 0))/s", what))
        }
        let total = result.total(\.response)
        tiles.append((Self.milliseconds(total, 0.5), "p50 response"))
        tiles.append((Self.milliseconds(total, 0.99), "p99 response"))
        tiles.append(("\(decimal(result.errorShare * 100, places: 2))%", "failed or not sent"))
        if let cpu = result.cpuMicrosecondsPerRequest {
            tiles.append(("\(decimal(cpu, places: 1)) µs", "server CPU a request"))
        }
        return tiles
    }

    /// The figures of all rates together say nothing, because some of the rates were too high.
    private func searchTiles(_ search: SearchResult) -> [(String, String)] {
        guard let best = search.best else { return [] }
        var tiles = [("\(best)/s", "highest rate that holds")]
        if let there = RateFigures.all(of: result).first(where: { $0.rate == Double(best) }) {
            tiles.append((Self.milliseconds(there.response, 0.5), "p50 response at it"))
            tiles.append((Self.milliseconds(there.response, 0.99), "p99 response at it"))
            if let share = there.serverCPUShare {
                tiles.append((decimal(share, places: 2), "CPUs of the server at it"))
            }
        }
        return tiles
    }

    private var notes: String {
        var lines = result.warnings.map { "<li class=\"bad\">\(HTML.escaped($0))</li>" }
        if let failure = result.failure { lines.append("<li class=\"bad\">\(HTML.escaped(failure))</li>") }
        if result.isInterrupted { lines.append("<li class=\"bad\">interrupted: the figures are partial</li>") }
        if result.connectionsLost > 0 {
            lines.append("<li class=\"bad\">\(result.connectionsLost) connections lost</li>")
        }
        for verdict in result.verdicts {
            lines.append(
                "<li class=\"\(verdict.holds ? "good" : "bad")\">\(verdict.holds ? "holds" : "missed"): "
                    + "\(HTML.escaped(verdict.objective)), measured \(HTML.escaped(verdict.measured))</li>")
        }
        if let found = SearchResult(result) {
            lines.append("<li class=\"found\">\(HTML.escaped(found.sentence))</li>")
        } else if let knee = Saturation(result) {
            lines.append("<li>\(HTML.escaped(knee.sentence))</li>")
        }
        if result.hashes.name == "synthetic" {
            lines.append(
                "<li>password hashes are cheap here (synthetic tenant): sign-ins say nothing about real ones</li>")
        }
        return lines.isEmpty ? "" : "<ul>\(lines.joined(separator: "\n"))</ul>\n"
    }

    /// The most rates in the table. A reader does not look through more; the plots have them.
    private static let ratesMax = 60

    private var rateTable: String {
        let rates = RateFigures.all(of: result)
        guard (2...Self.ratesMax).contains(rates.count) else { return "" }
        let search = SearchResult(result)
        let head = ["asked for", "answered", "failed", "p50 ms", "p99 ms", "max ms", "server CPUs", "all CPUs", ""]
        let rows = rates.map { rate in
            [
                "\(decimal(rate.rate, places: 0))/s", "\(decimal(rate.answered, places: 0))/s", "\(rate.errorCount)",
            ]
                + [0.5, 0.99, 1].map { decimal(Double(rate.response.value(atShare: $0)) / 1e6, places: 2) }
                + [rate.serverCPUShare, rate.machineCPUShare].map { $0.map { decimal($0, places: 2) } ?? "" }
                + [Self.verdict(on: rate, search)]
        }
        return Self.table("Rate by rate", head, rows)
    }

    private static func verdict(on rate: RateFigures, _ search: SearchResult?) -> String {
        guard let search else { return "" }
        if let best = search.best, rate.rate <= Double(best) { return "holds" }
        return search.failed.map { rate.rate >= Double($0) ? "fails" : "" } ?? ""
    }

    private var operationTable: String {
        let head = ["", "per second", "ok", "errors", "p50", "p90", "p99", "p99.9", "max", "mean"]
        var rows: [[String]] = []
        for operation in result.operations {
            let record = operation.record
            rows.append(
                [
                    operation.name, decimal(result.rate(of: operation), places: 1), "\(record.okCount)",
                    "\(record.errorCount)",
                ]
                    + Self.cells(record.response))
            guard !record.service.isEmpty else { continue }
            rows.append(["service time", "", "", ""] + Self.cells(record.service))
            rows.append(["schedule lag", "", "", ""] + Self.cells(record.scheduleLag))
        }
        let ofAll = RateFigures.all(of: result).count > 1 ? ", of all rates together" : ""
        return Self.table("Response times in milliseconds\(ofAll)", head, rows)
    }

    private static func cells(_ histogram: Histogram) -> [String] {
        RunResult.shares.map { decimal(Double(histogram.value(atShare: $0.share)) / 1e6, places: 3) } + [
            decimal(histogram.mean / 1e6, places: 3)
        ]
    }

    private var failureTable: String {
        var rows: [[String]] = []
        for operation in result.operations {
            for (reason, count) in operation.record.errors.sorted(by: { $0.key < $1.key }) {
                rows.append([operation.name, reason, "\(count)"])
            }
        }
        for (reason, count) in result.notSent.sorted(by: { $0.key < $1.key }) {
            rows.append(["not sent", reason, "\(count)"])
        }
        return rows.isEmpty ? "" : Self.table("What failed", ["", "reason", "count"], rows)
    }

    private var configurationTable: String {
        var rows = (result.configuration + result.host).map { member in
            [member.name.string, String(decoding: member.value.serialized(), as: UTF8.self)]
        }
        rows.append(["server software", result.serverSoftware])
        rows.append(["password hashes", result.hashes.name])
        rows.append(["load generators", "\(generatorCount)"])
        if let share = result.serverCPUShare { rows.append(["CPUs of the server", decimal(share, places: 2)]) }
        rows.append(["CPUs of the load tool", decimal(result.generatorCPUShare, places: 2)])
        rows.append(["CPUs of other programs", decimal(result.otherCPUShare, places: 2)])
        return Self.table("What was run", ["", ""], rows)
    }

    private static func table(_ title: String, _ head: [String], _ rows: [[String]]) -> String {
        let headCells = head.map { "<th>\(HTML.escaped($0))</th>" }.joined()
        let lines = rows.map { "<tr>" + $0.map { "<td>\(HTML.escaped($0))</td>" }.joined() + "</tr>\n" }.joined()
        return "<h2>\(HTML.escaped(title))</h2>\n<table><tr>\(headCells)</tr>\n\(lines)</table>\n"
    }

    private static func milliseconds(_ histogram: Histogram, _ share: Double) -> String {
        "\(decimal(Double(histogram.value(atShare: share)) / 1e6, places: 2)) ms"
    }

    private static let style = """
        body{font:15px/1.45 system-ui,sans-serif;color:#1c1c1c;background:#fff;
        max-width:1500px;margin:24px auto;padding:0 20px}
        h1{font-size:22px}h2{font-size:16px;margin:28px 0 8px}
        table{border-collapse:collapse}td,th{padding:3px 12px;text-align:right;
        border-bottom:1px solid #e3e3e3;font-weight:400}
        th{color:#666}td:first-child{text-align:left}
        .tiles{display:flex;flex-wrap:wrap;gap:12px}
        .tiles div{background:#f4f6f8;border-radius:8px;padding:10px 18px;color:#555}
        .tiles b{display:block;font-size:22px;color:#1c1c1c}
        .plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(560px,1fr));gap:18px}
        figure{margin:0}figcaption{font-weight:600;margin:12px 0 4px}svg text{font-size:12px;fill:#555}
        .legend span{margin-right:16px;font-size:13px}
        .legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:5px}
        .legend{margin:0}.found{font-weight:600}.bad{color:#b3261e}.good{color:#1a7f37}
        """
}

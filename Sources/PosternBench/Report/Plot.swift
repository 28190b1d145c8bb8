import Glibc

/// A chart of lines or points as SVG, with axes that may be logarithmic.
struct Plot {
    enum Scale {
        case linear
        case logarithmic
    }

    enum Style {
        case line
        case points
    }

    struct Series {
        var name: String
        var style = Style.line
        var points: [(x: Double, y: Double)]
    }

    var title: String
    var xLabel: String
    var yLabel: String
    var xScale = Scale.linear
    var yScale = Scale.linear
    var xTicks: [(at: Double, label: String)]?
    var series: [Series]

    static let colors = ["#1f6feb", "#d1495b", "#2e8b57", "#8250df", "#b35900", "#0b7285", "#6b6b6b", "#a61e4d"]
    private static let (width, height) = (720.0, 300.0)
    private static let (left, right, top, bottom) = (70.0, 34.0, 12.0, 46.0)

    /// Empty when there is nothing to draw.
    var svg: String {
        let all = series.flatMap { $0.points.filter { isDrawn($0) } }
        guard let x = Axis(all.map(\.x), xScale), let y = Axis(all.map(\.y) + (yScale == .linear ? [0] : []), yScale)
        else { return "" }
        var text = """
            <figure><figcaption>\(HTML.escaped(title))</figcaption>
            <svg viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" aria-label="\(HTML.escaped(title))">

            """
        for tick in xTicks ?? x.ticks { text += vertical(tick, x) }
        for tick in y.ticks { text += horizontal(tick, y) }
        for (number, one) in series.enumerated() {
            text += drawn(one, Self.colors[number % Self.colors.count], x, y)
        }
        text += label(xLabel, Self.left + plotWidth / 2, Self.height - 8, "middle")
        text +=
            "<text transform=\"translate(14 \(coordinate(Self.top + plotHeight / 2))) rotate(-90)\" "
            + "text-anchor=\"middle\">"
            + "\(HTML.escaped(yLabel))</text>\n"
        return text + "</svg>\n" + legend + "</figure>\n"
    }

    private var plotWidth: Double { Self.width - Self.left - Self.right }
    private var plotHeight: Double { Self.height - Self.top - Self.bottom }

    private func isDrawn(_ point: (x: Double, y: Double)) -> Bool {
        point.x.isFinite && point.y.isFinite && (xScale == .linear || point.x > 0) && (yScale == .linear || point.y > 0)
    }

    private func place(_ point: (x: Double, y: Double), _ x: Axis, _ y: Axis) -> (String, String) {
        (
            coordinate(Self.left + x.share(of: point.x) * plotWidth),
            coordinate(Self.top + (1 - y.share(of: point.y)) * plotHeight)
        )
    }

    private func drawn(_ series: Series, _ color: String, _ x: Axis, _ y: Axis) -> String {
        let places = series.points.filter { isDrawn($0) }.map { place($0, x, y) }
        switch series.style {
        case .line where places.count > 1:
            let path = places.map { "\($0.0),\($0.1)" }.joined(separator: " ")
            return "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(color)\" stroke-width=\"1.6\"/>\n"
        default:
            return places.map { "<circle cx=\"\($0.0)\" cy=\"\($0.1)\" r=\"3\" fill=\"\(color)\"/>\n" }.joined()
        }
    }

    private func vertical(_ tick: (at: Double, label: String), _ axis: Axis) -> String {
        let share = axis.share(of: tick.at)
        guard (0...1).contains(share) else { return "" }
        let at = Self.left + share * plotWidth
        return line(at, Self.top, at, Self.top + plotHeight)
            + label(tick.label, at, Self.top + plotHeight + 16, "middle")
    }

    private func horizontal(_ tick: (at: Double, label: String), _ axis: Axis) -> String {
        let share = axis.share(of: tick.at)
        guard (0...1).contains(share) else { return "" }
        let at = Self.top + (1 - share) * plotHeight
        return line(Self.left, at, Self.left + plotWidth, at) + label(tick.label, Self.left - 6, at + 4, "end")
    }

    private func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double) -> String {
        "<line x1=\"\(coordinate(x1))\" y1=\"\(coordinate(y1))\" x2=\"\(coordinate(x2))\" y2=\"\(coordinate(y2))\" "
            + "stroke=\"#e3e3e3\"/>\n"
    }

    private func label(_ text: String, _ x: Double, _ y: Double, _ anchor: String) -> String {
        "<text x=\"\(coordinate(x))\" y=\"\(coordinate(y))\" text-anchor=\"\(anchor)\">\(HTML.escaped(text))</text>\n"
    }

    private func coordinate(_ value: Double) -> String { decimal(value, places: 1) }

    private var legend: String {
        guard series.count > 1 else { return "" }
        let entries = series.enumerated().map { number, one in
            "<span><i style=\"background:\(Self.colors[number % Self.colors.count])\"></i>"
                + "\(HTML.escaped(one.name))</span>"
        }
        return "<p class=\"legend\">\(entries.joined(separator: " "))</p>\n"
    }
}

/// Maps values to places between 0 and 1, with round ticks.
private struct Axis {
    private let low: Double
    private let high: Double
    private let scale: Plot.Scale
    let ticks: [(at: Double, label: String)]

    init?(_ values: [Double], _ scale: Plot.Scale) {
        guard let least = values.min(), let most = values.max() else { return nil }
        self.scale = scale
        switch scale {
        case .linear:
            let step = Self.roundStep((most - least) / 5)
            low = (least / step).rounded(.down) * step
            high = max(low + step, (most / step).rounded(.up) * step)
            let count = Int(((high - low) / step).rounded())
            let (low, high) = (self.low, self.high)
            ticks = (0...min(20, count)).map { low + Double($0) * step }.filter { $0 <= high * 1.001 + 1e-9 }.map {
                ($0, Self.text($0))
            }
        case .logarithmic:
            low = pow(10, log10(least).rounded(.down))
            high = max(low * 10, pow(10, log10(most).rounded(.up)))
            let (low, high) = (self.low, self.high)
            ticks = (0...20).map { low * pow(10, Double($0)) }.filter { $0 <= high * 1.001 }.map { ($0, Self.text($0)) }
        }
    }

    func share(of value: Double) -> Double {
        switch scale {
        case .linear: (value - low) / (high - low)
        case .logarithmic: log10(value / low) / log10(high / low)
        }
    }

    /// 1, 2 or 5 times a power of ten.
    private static func roundStep(_ wish: Double) -> Double {
        guard wish > 0, wish.isFinite else { return 1 }
        let power = pow(10, log10(wish).rounded(.down))
        return power * (wish / power <= 1 ? 1 : wish / power <= 2 ? 2 : wish / power <= 5 ? 5 : 10)
    }

    private static func text(_ value: Double) -> String {
        let size = abs(value)
        if size >= 1e6 { return trimmed(value / 1e6) + "M" }
        if size >= 1e4 { return trimmed(value / 1e3) + "k" }
        return trimmed(value)
    }

    private static func trimmed(_ value: Double) -> String {
        var text = decimal(value, places: 4)
        while text.contains("."), text.hasSuffix("0") || text.hasSuffix(".") { text.removeLast() }
        return text
    }
}

enum HTML {
    /// For text and for attribute values in double quotes. Control characters have no place in HTML.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\0"..<" ", "\u{7F}"..<"\u{A0}": escaped += " "
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

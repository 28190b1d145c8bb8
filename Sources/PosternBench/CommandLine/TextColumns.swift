/// The format in which a command prints its figures.
enum OutputFormat: String, CaseIterable {
    case table
    case json
}

/// The text with spaces on the right; a negative width puts them on the left.
func padded(_ text: String, to width: Int) -> String {
    let spaces = String(repeating: " ", count: max(0, abs(width) - text.count))
    return width < 0 ? spaces + text : text + spaces
}

/// A number with this many digits after the point. A number that is not finite, or beyond 2^53, is written as such.
func decimal(_ value: Double, places: Int) -> String {
    guard value.isFinite, abs(value) < 9e12 else { return "\(value)" }
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let rounded = Int((abs(value) * Double(scale)).rounded())
    let sign = value < 0 && rounded > 0 ? "-" : ""
    if places == 0 { return sign + String(rounded) }
    let digits = String(rounded % scale)
    return "\(sign)\(rounded / scale)." + String(repeating: "0", count: places - digits.count) + digits
}

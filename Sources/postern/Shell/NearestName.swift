/// The candidate that a typo most likely meant; nil when none is near.
func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    let ranked = candidates.map { ($0, editDistance(word, $0)) }
    guard let best = ranked.min(by: { $0.1 < $1.1 }), best.1 <= max(1, word.count / 3) else { return nil }
    return best.0
}

/// The Levenshtein distance, in which a swap of neighbours counts as one.
private func editDistance(_ left: String, _ right: String) -> Int {
    let (left, right) = ([UInt8](left.utf8), [UInt8](right.utf8))
    var rows = [Array(0...right.count)]
    for row in 1..<(left.count + 1) {
        var current = [row]
        for column in 1..<(right.count + 1) {
            let cost = left[row - 1] == right[column - 1] ? 0 : 1
            var best = min(rows[row - 1][column] + 1, current[column - 1] + 1, rows[row - 1][column - 1] + cost)
            if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                best = min(best, rows[row - 2][column - 2] + 1)
            }
            current.append(best)
        }
        rows.append(current)
    }
    return rows[left.count][right.count]
}

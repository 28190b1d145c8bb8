/// Finds the places of a link in words that are read byte by byte, in linear time (Knuth, Morris and Pratt, "Fast
/// Pattern Matching in Strings", 1977). A tenant's admin chooses both the words and most of the link: a link that
/// repeats itself would cost a plain search the product of both lengths.
struct LinkSearch {
    private let link: [UInt8]
    /// For each beginning of the link: the length of the longest shorter beginning that it ends with.
    private let borders: [Int]
    /// How many bytes of the link the words read so far end with.
    private var matchedCount = 0
    /// How often a byte of the words was compared with a byte of the link.
    private(set) var comparisonCount = 0

    /// An empty link is found nowhere.
    init(_ link: [UInt8]) {
        var borders = [0]
        borders.reserveCapacity(link.count)
        for index in link.indices.dropFirst() {
            var length = borders[index - 1]
            while length > 0, link[length] != link[index] { length = borders[length - 1] }
            borders.append(link[length] == link[index] ? length + 1 : 0)
        }
        self.link = link
        self.borders = borders
    }

    /// Reads the next byte of the words. Returns whether the link ends with it; the next link begins after it.
    mutating func endsLink(_ byte: UInt8) -> Bool {
        guard !link.isEmpty else { return false }
        comparisonCount += 1
        while link[matchedCount] != byte {
            guard matchedCount > 0 else { return false }
            matchedCount = borders[matchedCount - 1]
            comparisonCount += 1
        }
        matchedCount += 1
        guard matchedCount == link.count else { return false }
        matchedCount = 0
        return true
    }
}

import Journal

/// One row of the journal, with its changes.
struct Row {
    let head: JournalHead
    let node: Int
    let requests: [Request]
    let puts: [Put]

    var position: Int { Int(head.mark.position) }

    init(over mark: JournalMark, _ id: BatchID, node: Int, requests: [Request], puts: [Put]) {
        // Nobody attacks this hash; the model only needs different hashes for different pasts.
        var hash = (mark.hash.words[0] ^ id.words[0]) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ (hash >> 32)) &* 0xC4CE_B9FE_1A85_EC53
        let words = SIMD4<UInt64>(hash ^ (hash >> 29), 0, 0, 0)
        head = JournalHead(
            mark: JournalMark(position: mark.position + 1, hash: JournalHash(words)), previousHash: mark.hash,
            batchID: id)
        (self.node, self.requests, self.puts) = (node, requests, puts)
    }

    private init() {
        head = JournalHead(
            mark: JournalMark(position: 0, hash: JournalHash(.zero)), previousHash: JournalHash(.zero),
            batchID: BatchID(.zero))
        (node, requests, puts) = (-1, [], [])
    }

    /// The row with which the cluster began.
    static let first = Row()
}

import Journal
import Testing

/// What a node does that is outrun again and again, from the moment when it asks for a turn.
@Suite struct TurnStoryTests {
    private typealias Table = JournalNodeTests

    /// Takes a node whose entry was sent over 6 through a story: events, and what the node does then.
    private func follow(_ story: [(JournalEvent, String)]) throws {
        let events = try #require(Table.states.first { $0.name == "sent" }).events
        var subject = Table.subject(events)
        for (event, actions) in story { #expect(Table.text(subject.handle(event)) == actions, "\(event)") }
    }

    @Test func `An entry in a turn ends the turn`() throws {
        try follow([
            (.outrun(wantsTurn: true), "abort, begin turn"), (.turn(isGiven: true), "read 6"),
            (.rows([Table.row(6), Table.row(7)]), "apply 7"), (.stored(Table.mark(7)), "run"),
            (.ran(.changes), "append 3 over 7"), (.appended(Table.mark(8)), "commit 8"),
            (.stored(Table.mark(8)), "answer"), (.requestsCame, "run"), (.ran(.refusals), "read 8"),
        ])
    }

    @Test func `A turn in which nothing is appended is given back before anything else`() throws {
        try follow([
            (.outrun(wantsTurn: true), "abort, begin turn"), (.turn(isGiven: true), "read 6"),
            (.rows([Table.row(6), Table.row(7)]), "apply 7"), (.stored(Table.mark(7)), "run"),
            // The end that was seen says nothing about a request that comes now.
            (.requestsCame, ""), (.ran(.refusals), "end turn"), (.turnEnded, "read 7"),
            (.rows([Table.row(7)]), "answer, run"), (.ran(.changes), "append 3 over 7"),
        ])
    }

    @Test func `Without a turn the node goes on as before`() throws {
        try follow([
            (.outrun(wantsTurn: true), "abort, begin turn"), (.turn(isGiven: false), "read 6"),
            (.rows([Table.row(6), Table.row(7)]), "apply 7"), (.stored(Table.mark(7)), "run"),
            (.ran(.refusals), "answer"),
        ])
    }

    @Test func `A turn ends with its connection`() throws {
        try follow([
            (.outrun(wantsTurn: true), "abort, begin turn"), (.turn(isGiven: true), "read 6"),
            (.rows([Table.row(6), Table.row(7)]), "apply 7"), (.stored(Table.mark(7)), "run"),
            (.connectionLost, "connect"), (.ran(.refusals), "abort"), (.connected, "read 7"),
            // The entry that confirms the connection is outrun, too, and gets a turn.
            (.rows([Table.row(7)]), "append nothing over 7"), (.outrun(wantsTurn: true), "begin turn"),
            (.turn(isGiven: true), "read 7"), (.rows([Table.row(7), Table.row(8)]), "append nothing over 8"),
            (.appended(Table.mark(9)), "read 7"),
            (.rows([Table.row(7), Table.row(8), Table.row(9)]), "apply 9"), (.stored(Table.mark(9)), "run"),
            (.ran(.refusals), "answer"),
        ])
    }
}

/// When a node asks for a turn.
@Suite struct OutrunsTests {
    private struct Node {
        var outruns = Outruns(countMin: 3, timeMin: .milliseconds(500), pause: .seconds(3))

        /// Whether the node asks after each of these entries. Times are in milliseconds.
        mutating func asks(_ entries: [(sent: Int, outrun: Int)]) -> [Bool] {
            entries.map { outruns.isTurnWanted(after: .milliseconds($0.sent), at: .milliseconds($0.outrun)) }
        }
    }

    @Test func `A node far from the engine asks after three entries`() {
        var node = Node()
        let asks = node.asks([(sent: 0, outrun: 400), (sent: 800, outrun: 1_200), (sent: 1_600, outrun: 2_000)])
        #expect(asks == [false, false, true])
    }

    /// Several nodes that write at once outrun each other often.
    @Test func `A node near the engine asks after half a second`() {
        var node = Node()
        let often = node.asks((0..<100).map { (sent: 4 * $0, outrun: 4 * $0 + 2) })
        #expect(often == [Bool](repeating: false, count: 100))
        let later = node.asks([(sent: 498, outrun: 499), (sent: 499, outrun: 500)])
        #expect(later == [false, true])
    }

    @Test func `A node that asked in vain pauses`() {
        var node = Node()
        let asks = node.asks([(sent: 0, outrun: 500), (sent: 500, outrun: 1_000), (sent: 1_000, outrun: 1_500)])
        #expect(asks == [false, false, true])
        let again = node.asks([(sent: 4_000, outrun: 4_499), (sent: 4_000, outrun: 4_500)])
        #expect(again == [false, true])
        node.outruns.end()
        let anew = node.asks([(sent: 5_000, outrun: 5_500), (sent: 5_500, outrun: 6_000), (sent: 6_000, outrun: 6_500)])
        #expect(anew == [false, false, true])
    }
}

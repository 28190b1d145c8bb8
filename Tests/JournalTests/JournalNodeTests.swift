import Testing

@testable import Journal

/// Every state of a node × every event: what the node does then.
@Suite struct JournalNodeTests {
    // MARK: Places

    static func mark(_ position: UInt64, _ branch: UInt64 = 0) -> JournalMark {
        JournalMark(position: position, hash: JournalHash(SIMD4(position, branch, 0, 0)))
    }

    static func id(_ number: UInt64) -> BatchID { BatchID(SIMD2(number, 0)) }

    /// The row at a position, by another node unless `batch` says whose it is.
    static func row(_ position: UInt64, batch: UInt64 = 99, branch: UInt64 = 0) -> JournalHead {
        JournalHead(mark: mark(position, branch), previousHash: mark(position - 1).hash, batchID: id(batch))
    }

    // MARK: States and events

    /// A node, and the number of the last name that it gave to an entry: its first entry is 1.
    struct Subject {
        var node = JournalNode()
        var lastID: UInt64 = 0

        mutating func handle(_ event: JournalEvent) -> [JournalAction] {
            node.handle(event) {
                lastID += 1
                return JournalNodeTests.id(lastID)
            }
        }
    }

    /// How each state is reached, from a node whose store is at 5.
    static let states: [(name: String, events: [JournalEvent])] = {
        let began: [JournalEvent] = [.began(mark(5))]
        let ready =
            began + [.connected, .rows([row(5)]), .appended(mark(6)), .rows([row(5), row(6)]), .stored(mark(6))]
        let running = ready + [.requestsCame]
        let sent = running + [.ran(.changes)]
        let unknown = sent + [.connectionLost]
        let turn = sent + [.outrun(wantsTurn: true), .turn(isGiven: true)]
        let runningInTurn = turn + [.rows([row(6), row(7)]), .stored(mark(7))]
        return [
            ("joining", [.began(nil)]),
            ("connecting", began),
            ("looking", began + [.connected]),
            ("confirming", began + [.connected, .rows([row(5)])]),
            ("ready", ready),
            ("reading", ready + [.journalGrew]),
            ("applying", ready + [.journalGrew, .rows([row(6), row(7)])]),
            ("running", running),
            ("asking", running + [.ran(.refusals)]),
            ("sent", sent),
            ("committing", sent + [.appended(mark(7))]),
            ("unknown", unknown),
            ("unknown, looking", unknown + [.connected]),
            ("unknown, sent again", unknown + [.connected, .rows([row(6)])]),
            ("seen, confirming", unknown + [.connected, .rows([row(6), row(7, batch: 2)])]),
            ("turn, asked", sent + [.outrun(wantsTurn: true)]),
            ("turn, looking", turn),
            ("turn, running", runningInTurn),
            ("turn, sent", runningInTurn + [.ran(.changes)]),
            ("turn, ending", runningInTurn + [.ran(.refusals)]),
            ("stopped", began + [.connected, .rows([row(5, branch: 1)])]),
        ]
    }()

    static let events: [(name: String, event: JournalEvent)] = [
        ("joined", .joined(mark(3))),
        ("no snapshot", .joined(nil)),
        ("connected", .connected),
        ("lost", .connectionLost),
        ("appended", .appended(mark(7))),
        ("outrun", .outrun(wantsTurn: false)),
        ("outrun again", .outrun(wantsTurn: true)),
        ("turn", .turn(isGiven: true)),
        ("no turn", .turn(isGiven: false)),
        ("turn ended", .turnEnded),
        ("ran", .ran(.changes)),
        ("refused", .ran(.refusals)),
        ("stored", .stored(mark(8))),
        ("requests", .requestsCame),
        ("grew", .journalGrew),
    ]

    static func subject(_ events: [JournalEvent]) -> Subject {
        var subject = Subject()
        for event in events { _ = subject.handle(event) }
        return subject
    }

    static func text(_ actions: [JournalAction]) -> String {
        actions.map { action -> String in
            switch action {
            case .join: "join"
            case .connect: "connect"
            case .read(let position): "read \(position)"
            case .append(let mark, .decided(let id)): "append \(id.words[0]) over \(mark.position)"
            case .append(let mark, .empty): "append nothing over \(mark.position)"
            case .beginTurn: "begin turn"
            case .endTurn: "end turn"
            case .run: "run"
            case .abort: "abort"
            case .forget: "forget"
            case .commit(let mark): "commit \(mark.position)"
            case .apply(let mark): "apply \(mark.position)"
            case .answer: "answer"
            case .stop(.forked): "forked"
            case .stop(.damaged): "damaged"
            }
        }.joined(separator: ", ")
    }

    @Test func `Every state does what the table says with every event that may come then`() {
        var lines: [String] = []
        for state in Self.states {
            for event in Self.events {
                var subject = Self.subject(state.events)
                let actions = subject.handle(event.event)
                if !actions.isEmpty { lines.append("\(state.name) | \(event.name): \(Self.text(actions))") }
            }
        }
        #expect(lines == Self.table)
    }

    /// Pairs that are not listed change nothing: an answer that was not asked for, or news of what is known already.
    static let table = [
        "joining | joined: connect",
        "joining | no snapshot: join",
        "connecting | connected: read 5",
        "connecting | lost: connect",
        "looking | lost: connect",
        "confirming | lost: connect",
        "confirming | appended: read 5",
        "confirming | outrun: read 5",
        "confirming | outrun again: begin turn",
        "ready | lost: connect",
        "ready | requests: run",
        "ready | grew: read 6",
        "reading | lost: connect",
        "applying | lost: connect",
        "running | lost: connect",
        "running | ran: append 2 over 6",
        "running | refused: read 6",
        "asking | lost: abort, connect",
        "sent | lost: connect",
        "sent | appended: commit 7",
        "sent | outrun: abort, read 6",
        "sent | outrun again: abort, begin turn",
        "committing | lost: connect",
        "committing | stored: answer",
        "unknown | connected: read 6",
        "unknown | lost: connect",
        "unknown, looking | lost: connect",
        "unknown, sent again | lost: connect",
        "unknown, sent again | appended: commit 7",
        "unknown, sent again | outrun: read 6",
        "unknown, sent again | outrun again: begin turn",
        "seen, confirming | lost: connect",
        "seen, confirming | appended: commit 7",
        "seen, confirming | outrun: read 6",
        "seen, confirming | outrun again: begin turn",
        "turn, asked | lost: connect",
        "turn, asked | turn: read 6",
        "turn, asked | no turn: read 6",
        "turn, looking | lost: connect",
        "turn, running | lost: connect",
        "turn, running | ran: append 3 over 7",
        "turn, running | refused: end turn",
        "turn, sent | lost: connect",
        "turn, sent | appended: commit 7",
        "turn, sent | outrun: abort, read 7",
        "turn, sent | outrun again: abort, begin turn",
        "turn, ending | lost: abort, connect",
        "turn, ending | turn ended: answer",
    ]

    // MARK: Rows

    /// A state that reads, the rows that come, and the actions that follow.
    static let readings: [(state: String, rows: [JournalHead], actions: String)] = [
        // The store is at an earlier position of this journal, or it is not.
        ("looking", [row(5)], "append nothing over 5"),
        ("looking", [row(5), row(6)], "append nothing over 6"),
        ("looking", [row(5, branch: 1)], "forked"),
        ("looking", [], "forked"),
        ("looking", [row(7), row(8)], "join"),
        ("looking", [row(5), row(7)], "damaged"),
        ("looking", [row(5), row(6), row(7, branch: 1), row(8)], "damaged"),
        ("reading", [row(6)], ""),
        ("reading", [row(6), row(7)], "apply 7"),
        ("reading", [row(6, branch: 1)], "forked"),
        ("reading", [], "forked"),
        // Refusals are answered only at the journal's end.
        ("asking", [row(6)], "answer"),
        ("asking", [row(6), row(7)], "abort, apply 7"),
        ("asking", [row(9)], "abort, join"),
        // An entry with an unknown outcome is looked for by its name. Number 1 was the entry that confirmed.
        ("unknown, looking", [row(6)], "append 2 over 6"),
        ("unknown, looking", [row(6), row(7, batch: 2)], "append nothing over 7"),
        ("unknown, looking", [row(6), row(7, batch: 2), row(8)], "append nothing over 8"),
        ("unknown, looking", [row(6), row(7)], "abort, append nothing over 7"),
        ("unknown, looking", [row(8)], "forget, join"),
        ("unknown, looking", [row(6, branch: 1)], "forked"),
    ]

    @Test(arguments: readings) func `Rows are taken when they go on from the store`(
        _ state: String, _ rows: [JournalHead], _ actions: String
    ) throws {
        let events = try #require(Self.states.first { $0.name == state }).events
        var subject = Self.subject(events)
        #expect(Self.text(subject.handle(.rows(rows))) == actions)
    }

    // MARK: Whole stories

    private func follow(_ subject: inout Subject, _ story: [(JournalEvent, String)]) {
        for (event, actions) in story { #expect(Self.text(subject.handle(event)) == actions, "\(event)") }
    }

    @Test func `A lost race is decided again over the new state`() {
        var subject = Self.subject(Self.states.first { $0.name == "sent" }?.events ?? [])
        follow(
            &subject,
            [
                (.outrun(wantsTurn: false), "abort, read 6"), (.rows([Self.row(6), Self.row(7)]), "apply 7"),
                (.stored(Self.mark(7)), "run"), (.ran(.changes), "append 3 over 7"),
                (.appended(Self.mark(8)), "commit 8"), (.stored(Self.mark(8)), "answer"),
            ])
        #expect(subject.node.isServing && subject.node.mark == Self.mark(8))
    }

    @Test func `Refusals do not wait for a journal that stands still`() {
        var subject = Self.subject(Self.states.first { $0.name == "asking" }?.events ?? [])
        follow(
            &subject,
            [
                (.rows([Self.row(6), Self.row(7)]), "abort, apply 7"), (.stored(Self.mark(7)), "run"),
                // The journal's end was at 7 after the requests came.
                (.ran(.refusals), "answer"),
                // That says nothing about a request that comes now.
                (.requestsCame, "run"), (.ran(.refusals), "read 7"),
                (.rows([Self.row(7), Self.row(8)]), "abort, apply 8"),
                // Nor if a request comes before the decisions are made again, or a connection is lost.
                (.requestsCame, ""), (.stored(Self.mark(8)), "run"), (.ran(.refusals), "read 8"),
                (.rows([Self.row(8), Self.row(9)]), "abort, apply 9"), (.connectionLost, "connect"),
                (.stored(Self.mark(9)), ""), (.connected, "read 9"),
                (.rows([Self.row(9)]), "append nothing over 9"), (.appended(Self.mark(10)), "read 9"),
                // The read was asked for after the requests came.
                (.rows([Self.row(9), Self.row(10)]), "apply 10"), (.stored(Self.mark(10)), "run"),
                (.ran(.refusals), "answer"),
            ])
    }

    @Test func `A question that is older than a request shows nothing for it`() {
        var subject = Self.subject(Self.states.first { $0.name == "reading" }?.events ?? [])
        follow(
            &subject,
            [
                (.requestsCame, ""), (.rows([Self.row(6), Self.row(7)]), "apply 7"), (.stored(Self.mark(7)), "run"),
                (.ran(.refusals), "read 7"), (.rows([Self.row(7)]), "answer"),
            ])
    }

    @Test func `An entry that was seen is answered when one behind it is safe`() {
        var subject = Self.subject(Self.states.first { $0.name == "unknown" }?.events ?? [])
        follow(
            &subject,
            [
                (.connected, "read 6"), (.rows([Self.row(6), Self.row(7, batch: 2)]), "append nothing over 7"),
                (.connectionLost, "connect"), (.connected, "read 6"),
                // The engine lost the entry: the very same entry is sent once more.
                (.rows([Self.row(6)]), "append 2 over 6"), (.appended(Self.mark(7)), "commit 7"),
                (.stored(Self.mark(7)), "answer"),
            ])
    }

    @Test func `A connection that is lost while requests are decided has them decided again`() {
        var subject = Self.subject(Self.states.first { $0.name == "running" }?.events ?? [])
        follow(
            &subject,
            [
                (.connectionLost, "connect"), (.connected, ""), (.ran(.changes), "abort, read 6"),
                (.rows([Self.row(6)]), "append nothing over 6"), (.appended(Self.mark(7)), "read 6"),
                (.rows([Self.row(6), Self.row(7)]), "apply 7"), (.stored(Self.mark(7)), "run"),
            ])
    }

    @Test func `A node whose journal lost what it holds says nothing any more`() {
        var subject = Self.subject(Self.states.first { $0.name == "stopped" }?.events ?? [])
        for event in Self.events { #expect(subject.handle(event.event).isEmpty, "\(event.name)") }
        #expect(!subject.node.isServing)
    }
}

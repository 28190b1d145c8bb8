import Base
import Testing
import Wire

@testable import Transport

@Suite struct GRPCStreamStateTests {
    private enum Step: Equatable {
        case headers(StreamKind?, isLast: Bool)
        case ended, begin, answerBegan, answerEnded, closed, finished
    }

    /// The state's actions for a row of steps; a `begin` that comes too late is `none`, otherwise `deliver`.
    private static func actions(_ steps: [Step]) -> [GRPCStreamState.Action] {
        var state = GRPCStreamState()
        return steps.map { step in
            switch step {
            case .headers(let kind, let isLast): return state.headersEnded(kind, isLast: isLast)
            case .ended: return state.remoteEnded()
            case .begin: return state.begin() ? .deliver : .none
            case .answerBegan: state.answerBegan()
            case .answerEnded: state.answerEnded()
            case .closed: return state.closed()
            case .finished: return state.finished()
            }
            return .none
        }
    }

    private static let table: [(String, [Step], [GRPCStreamState.Action])] = [
        (
            "a unary call in good order",
            [.headers(.unary, isLast: false), .ended, .begin, .answerEnded, .closed, .finished],
            [.none, .begin, .deliver, .none, .none, .forget]
        ),
        (
            "its work ends before HTTP/2 is done",
            [.headers(.unary, isLast: false), .ended, .begin, .answerEnded, .finished, .closed],
            [.none, .begin, .deliver, .none, .none, .forget]
        ),
        (
            "a unary call without a message", [.headers(.unary, isLast: true), .answerEnded, .closed],
            [.refuseWithoutMessage, .none, .forget]
        ),
        (
            "reset before the message", [.headers(.remoteClosed, isLast: false), .closed, .closed],
            [.none, .forget, .none]
        ),
        (
            "reset before its turn", [.headers(.unary, isLast: false), .ended, .closed, .begin],
            [.none, .begin, .forget, .none]
        ),
        (
            "refused before its turn", [.headers(.unary, isLast: false), .ended, .answerEnded, .begin, .closed],
            [.none, .begin, .none, .none, .forget]
        ),
        (
            "reset while it runs", [.headers(.unary, isLast: false), .ended, .begin, .closed, .finished],
            [.none, .begin, .deliver, .cancel, .forget]
        ),
        (
            "a stream of messages",
            [.headers(.remoteOpen, isLast: false), .begin, .answerBegan, .ended, .answerEnded, .closed, .finished],
            [.begin, .deliver, .none, .deliver, .none, .none, .forget]
        ),
        (
            "a stream without messages", [.headers(.remoteOpen, isLast: true), .begin, .ended],
            [.begin, .deliver, .none]
        ),
        (
            "no such method", [.headers(nil, isLast: false), .ended, .begin, .answerEnded, .closed, .finished],
            [.begin, .none, .deliver, .none, .none, .forget]
        ),
        ("headers twice", [.headers(.unary, isLast: false), .headers(.unary, isLast: true)], [.none, .none]),
    ]

    @Test func `Each row of steps has its actions`() {
        for (name, steps, expected) in Self.table {
            #expect(Self.actions(steps) == expected, "\(name)")
        }
    }

    @Test func `An answer is wanted while the call runs and none was given`() {
        var state = GRPCStreamState()
        #expect(!state.wantsAnswer)
        _ = state.headersEnded(.unary, isLast: false)
        #expect(state.takesData && !state.wantsAnswer)
        _ = state.remoteEnded()
        #expect(!state.takesData && !state.wantsAnswer)
        #expect(state.begin() && state.wantsAnswer)
        state.answerBegan()
        #expect(state.wantsAnswer)
        state.answerEnded()
        #expect(!state.wantsAnswer && state.answer == .ended)
        state.answerBegan()
        #expect(state.answer == .ended)
    }
}

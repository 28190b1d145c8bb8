/// A mistake that a run makes on purpose, and that the checks must find.
enum Mistake: String, CaseIterable {
    /// After losing the race, decisions over the old state are appended over the new one.
    case noSecondRun = "no-second-run"
    /// A lost connection is treated as a failure, and the client is told so.
    case unknownIsFailure = "unknown-is-failure"
    /// A lost connection is treated as a success.
    case unknownIsSuccess = "unknown-is-success"
    /// Requests with an unknown outcome are decided and appended once more, under another name.
    case unknownIsRepeated = "unknown-is-repeated"
    /// The client is told before the entry is in the journal.
    case answerBeforeAppend = "answer-before-append"
    /// A refusal is told without asking for the journal's end.
    case refusalWhileBehind = "refusal-while-behind"
    /// The journal's end is taken from an answer that was under way when the request came.
    case oldAnswerOfEnd = "old-answer-of-end"
    /// A request that comes while the journal's end is asked for is decided again with those that came before.
    case oldAnswerDecidedAgain = "old-answer-decided-again"
    /// Nobody checks whether the store is the journal's past.
    case noForkCheck = "no-fork-check"
    /// Rows that are seen on a new connection are treated as safe.
    case noConfirmation = "no-confirmation"
    /// An answer is believed, although the engine warns that the wait for the standby was broken off.
    case warningIgnored = "warning-ignored"
    /// An entry is appended whatever state is below it.
    case appendOverAnything = "append-over-anything"
    /// In a turn, an entry that was inserted is treated as appended before the turn's transaction is committed.
    case insertedIsAppended = "inserted-is-appended"
    /// A turn in which there is nothing to append is not given back.
    case turnKept = "turn-kept"
    /// A node that is outrun again and again never asks for a turn.
    case noTurn = "no-turn"
    /// After a start, the node leaves out the entries that it wrote itself.
    case ownEntriesLeftOut = "own-entries-left-out"
    /// A request that was admitted under one setting is carried out under another.
    case noSettingsFence = "no-settings-fence"
}

/// What is wrong on purpose in a run that must be found out.
enum Mistake: String, CaseIterable {
    /// After losing the race, what was decided over the old state is appended over the new one.
    case noSecondRun = "no-second-run"
    /// A lost connection is taken for a failure, and the client is told so.
    case unknownIsFailure = "unknown-is-failure"
    /// A lost connection is taken for a success.
    case unknownIsSuccess = "unknown-is-success"
    /// What has an unknown outcome is decided and appended once more, under another name.
    case unknownIsRepeated = "unknown-is-repeated"
    /// The client is told before the entry is in the journal.
    case answerBeforeAppend = "answer-before-append"
    /// A refusal is told without asking for the journal's end.
    case refusalWhileBehind = "refusal-while-behind"
    /// The journal's end is taken from an answer that was under way when the request came.
    case oldAnswerOfEnd = "old-answer-of-end"
    /// Nobody looks whether the store is the journal's past.
    case noForkCheck = "no-fork-check"
    /// Rows that are seen on a new connection are taken for safe.
    case noConfirmation = "no-confirmation"
    /// An entry is appended whatever state is below it.
    case appendOverAnything = "append-over-anything"
    /// After a start, the node leaves out the entries that it wrote itself.
    case ownEntriesLeftOut = "own-entries-left-out"
    /// What was admitted under one setting is done under another.
    case noSettingsFence = "no-settings-fence"
}

import Messages

/// Reads a file of users item by item, with only one item in memory.
protocol ImportSource {
    /// The next item; nil at the end. Throws when nothing after it can be read.
    mutating func next() throws -> ImportItem?
}

enum ImportItem: Equatable {
    /// `ignored` has the names of the user's fields that Postern does not keep.
    case user(ImportUser, ignored: [String])
    /// How the passwords of later users were hashed.
    case hashSpec(NamedHashSpec)
    /// A row that cannot be sent; the next one may be good.
    case rejected(FirebaseUser.Rejection)
}

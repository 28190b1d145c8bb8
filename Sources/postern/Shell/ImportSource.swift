import Messages

/// What a file of users holds, one thing after the other, without holding more than one of them in memory.
protocol ImportSource {
    /// Nil at the end. Throws when nothing behind it can be read.
    mutating func next() throws -> ImportItem?
}

enum ImportItem: Equatable {
    /// `ignored` names what the file says of the user and Postern does not keep.
    case user(ImportUser, ignored: [String])
    /// How the passwords of users behind it were hashed.
    case hashSpec(NamedHashSpec)
    /// A row that cannot be sent; the next one may be good.
    case rejected(FirebaseUser.Rejection)
}

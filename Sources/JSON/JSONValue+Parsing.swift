public import Base

extension JSONValue {
    /// How deep arrays and objects may be nested if the caller gives no other limit.
    public static let depthMaxDefault = 16

    /// Parses exactly one value (RFC 8259) in UTF-8, with only white space around it.
    ///
    /// It refuses: two members of one name, NUL in a string or a name (escaped or not), lone surrogates, integers
    /// beyond Int64, numbers beyond Double, a byte order mark, and more than `maxDepth` nested arrays and objects. The
    /// caller bounds the size of the input: a value takes up to some 50 times the bytes of its JSON.
    public init(
        parsing bytes: UnsafeRawBufferPointer, maxDepth: Int = JSONValue.depthMaxDefault
    ) throws(JSONError) {
        precondition(maxDepth <= 256, "a nesting of \(maxDepth) is more than the stack is meant for")
        var parser = JSONParser(bytes, maxDepth: maxDepth)
        self = try parser.document()
    }

    public init(parsing bytes: [UInt8], maxDepth: Int = JSONValue.depthMaxDefault) throws(JSONError) {
        self = try bytes.span.withUnsafeBytes { (raw) throws(JSONError) in
            try JSONValue(parsing: raw, maxDepth: maxDepth)
        }
    }

    public init(parsing text: Text, maxDepth: Int = JSONValue.depthMaxDefault) throws(JSONError) {
        try self.init(parsing: text.bytes, maxDepth: maxDepth)
    }
}

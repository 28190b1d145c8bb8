/// The answer of a route of the side port.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var contentType: String
    /// Further header fields, such as `Cache-Control`. Only our own text, never text from outside.
    public var fields: [(name: String, value: String)]
    public var body: [UInt8]

    public init(
        status: Int = 200, contentType: String = "text/plain; charset=utf-8",
        fields: [(name: String, value: String)] = [], body: [UInt8]
    ) {
        self.status = status
        self.contentType = contentType
        self.fields = fields
        self.body = body
    }
}

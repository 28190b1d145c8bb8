public import Base

extension JSONWriter {
    /// `"name":"text"`
    public mutating func member(_ name: StaticString, text: Text) {
        self.name(name)
        string(text)
    }

    /// `"name":integer`
    public mutating func member(_ name: StaticString, integer: Int64) {
        self.name(name)
        self.integer(integer)
    }

    /// `"name":true`
    public mutating func member(_ name: StaticString, bool: Bool) {
        self.name(name)
        self.bool(bool)
    }
}

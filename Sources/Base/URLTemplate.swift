/// Fills URLs that have one placeholder, such as `{tenantid}`.
public enum URLTemplate {
    /// Replaces the first `placeholder` in `text` by `value`. Returns `text` unchanged when it has none.
    public static func fill(_ placeholder: StaticString, in text: Text, with value: Text) -> Text {
        let pattern = placeholder.withUTF8Buffer { [UInt8]($0) }
        guard text.byteCount >= pattern.count else { return text }
        for start in 0...(text.byteCount - pattern.count) {
            let end = start + pattern.count
            guard text.bytes[start..<end].elementsEqual(pattern) else { continue }
            return Text(unchecked: Array(text.bytes[..<start]) + value.bytes + Array(text.bytes[end...]))
        }
        return text
    }
}

/// Fills URLs that have one placeholder, such as `{tenantid}`.
public enum URLTemplate {
    /// Replaces the first `placeholder` in `text` by `value`. Returns `text` unchanged when it has none.
    public static func fill(_ placeholder: StaticString, in text: Text, with value: Text) -> Text {
        guard let parts = split(text, at: placeholder) else { return text }
        return Text(unchecked: Array(parts.before) + value.bytes + Array(parts.after))
    }

    /// The bytes before and after the first `placeholder` in `text`. Nil when it has none.
    public static func split(
        _ text: Text, at placeholder: StaticString
    ) -> (before: ArraySlice<UInt8>, after: ArraySlice<UInt8>)? {
        let pattern = placeholder.withUTF8Buffer { [UInt8]($0) }
        guard text.byteCount >= pattern.count else { return nil }
        for start in 0...(text.byteCount - pattern.count) {
            let end = start + pattern.count
            guard text.bytes[start..<end].elementsEqual(pattern) else { continue }
            return (text.bytes[..<start], text.bytes[end...])
        }
        return nil
    }
}

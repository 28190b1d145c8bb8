/// The kind of a field, by which the pre-scan checks its value. The numbers are those of KINDS in
/// tools/generator/c_sources.py.
enum FieldKind: UInt8 {
    case integer64 = 1
    case int32
    case uint32
    case bool
    case enumeration
    case fixed64
    case fixed32
    case bytes
    case text
    case message

    /// Repeated values of these kinds may come as one run of bytes.
    @inline(__always)
    var isPackable: Bool { rawValue < FieldKind.bytes.rawValue }
}

import Base

// Bytes as published vectors write them.

func hex(_ digits: String) -> [UInt8] { Hex.decode(digits.utf8.filter { $0 != 0x20 && $0 != 0x0A })! }
func base64(_ text: String) -> [UInt8] { Base64.standard.decode([UInt8](text.utf8))! }
func base64url(_ text: String) -> [UInt8] { Base64.url.decode([UInt8](text.utf8))! }
func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

extension Secret {
    var bytes: [UInt8] { withBytes { [UInt8]($0) } }
}

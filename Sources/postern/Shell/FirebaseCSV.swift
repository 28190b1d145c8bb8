// Files of `firebase auth:export --format csv`: no header, one user in each line.
//
// There are three widths: 26 or 27 columns at first, 28 with the custom claims, 52 with six more providers. A comma at
// the end makes one empty column more.

import Base
import Messages

enum FirebaseCSV {
    static let widths: Set<Int> = [26, 27, 28, 29, 52, 53]
    static let claimsColumn = 27

    /// Each provider has four columns from here on: raw id, email, display name, photo.
    static let providers: [(id: Text, column: Int)] = [
        ("google.com", 7), ("facebook.com", 11), ("twitter.com", 15), ("github.com", 19), ("apple.com", 28),
        ("microsoft.com", 32), ("gc.apple.com", 36), ("playgames.google.com", 40), ("linkedin.com", 44),
        ("yahoo.com", 48),
    ]

    /// A user as a line, in the widest form.
    static func line(_ user: ImportUser, hash: [UInt8], salt: [UInt8]) -> [UInt8] {
        var cells = [[UInt8]](repeating: [], count: 52)
        cells[0] = quoted(user.uid)
        cells[1] = quoted(user.email)
        cells[2] = user.emailVerified ? Array("true".utf8) : Array("false".utf8)
        cells[3] = Base64.standard.encode(hash)
        cells[4] = Base64.standard.encode(salt)
        cells[5] = quoted(user.displayName)
        cells[6] = quoted(user.photoURL)
        for provider in user.providers {
            guard let column = providers.first(where: { $0.id == provider.providerID })?.column else { continue }
            let texts = [provider.rawID, provider.email, provider.displayName, provider.photoURL]
            for (offset, text) in texts.enumerated() { cells[column + offset] = quoted(text) }
        }
        cells[23] = milliseconds(user.createdAtMicros)
        cells[24] = milliseconds(user.lastSignInAtMicros)
        cells[25] = quoted(user.phoneNumber)
        cells[26] = user.disabled ? Array("true".utf8) : Array("false".utf8)
        if !user.customClaimsJSON.isEmpty { cells[claimsColumn] = quotedClaims(user.customClaimsJSON) }
        return Array(cells.joined(separator: [UInt8(ascii: ",")])) + [UInt8(ascii: ","), 0x0A]
    }

    private static func milliseconds(_ micros: Int64) -> [UInt8] { micros == 0 ? [] : Array("\(micros / 1_000)".utf8) }

    private static func quoted(_ text: Text) -> [UInt8] {
        let needsQuotes = text.bytes.contains { [UInt8(ascii: ","), UInt8(ascii: "\""), 0x0A, 0x0D].contains($0) }
        guard needsQuotes else { return text.bytes }
        return [UInt8(ascii: "\"")]
            + text.bytes.flatMap { $0 == UInt8(ascii: "\"") ? [$0, $0] : [$0] } + [UInt8(ascii: "\"")]
    }

    /// The claims as a cell, always in quotes. Quotes inside are doubled, unless a backslash is before them.
    private static func quotedClaims(_ json: [UInt8]) -> [UInt8] {
        var cell = [UInt8(ascii: "\"")]
        for byte in json {
            if byte == UInt8(ascii: "\""), cell.last != UInt8(ascii: "\\") { cell.append(byte) }
            cell.append(byte)
        }
        return cell + [UInt8(ascii: "\"")]
    }
}

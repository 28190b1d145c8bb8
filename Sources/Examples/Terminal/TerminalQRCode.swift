import CQREncode

/// A text as a QR code, drawn with characters so that a phone's camera can read it from a terminal.
///
/// One character shows two modules, one above the other: a character alone would be twice as high as wide.
struct TerminalQRCode {
    /// The rows of modules, from the top. True: the module is dark.
    let modules: [[Bool]]

    /// Nil if the text is too long for a QR code (some 2,300 bytes).
    init?(_ text: String) {
        let bytes = [UInt8](text.utf8)
        // qrencode.h: the data is an array of unsigned char; version 0 is the smallest one that holds it.
        guard let code = QRcode_encodeData(Int32(clamping: bytes.count), bytes, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        // qrencode.h: the data has width × width bytes, whose least significant bit is 1 for a dark module.
        let data = UnsafeBufferPointer(start: code.pointee.data, count: width * width)
        self.modules = (0..<width).map { row in (0..<width).map { data[row * width + $0] & 1 == 1 } }
    }

    init(modules: [[Bool]]) { self.modules = modules }

    /// The code with the light border that a camera needs. The lines set their own colours, black on white, so that a
    /// dark terminal does not invert the code.
    var lines: [String] {
        let border = 4
        let side = modules.count + 2 * border
        func isDark(_ row: Int, _ column: Int) -> Bool {
            let (row, column) = (row - border, column - border)
            return modules.indices.contains(row) && modules[row].indices.contains(column) && modules[row][column]
        }
        return stride(from: 0, to: side, by: 2).map { row in
            let characters = (0..<side).map { column in
                switch (isDark(row, column), isDark(row + 1, column)) {
                case (false, false): " "
                case (true, false): "▀"
                case (false, true): "▄"
                case (true, true): "█"
                }
            }
            return "\u{1B}[30;107m" + characters.joined() + "\u{1B}[0m"
        }
    }
}

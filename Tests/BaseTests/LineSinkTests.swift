import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Base

@Suite struct LineSinkTests {
    private final class Troubles: Sendable {
        let all = Mutex<[Int32?]>([])
        func note(_ error: FileError?) { all.withLock { $0.append(error?.code) } }
    }

    private let troubles = Troubles()

    private func sink(_ destination: LineSink.Destination, byteCountMax: Int = 1 << 20) throws -> LineSink {
        try LineSink(
            destination, byteCountMax: byteCountMax, noteOfDropped: { [UInt8]("lost \($0)\n".utf8) },
            onTrouble: troubles.note)
    }

    private static func text(_ path: String) -> String { String(decoding: readFile(path) ?? [], as: UTF8.self) }

    @Test func `Lines reach the file in order, behind what was there, and only their owner reads it`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/lines"
            writeFile(path, [UInt8]("before\n".utf8))
            chmod(path, 0o600)
            let sink = try sink(.file(path))
            for number in 0..<1_000 { sink.append([UInt8]("\(number)\n".utf8)) }
            sink.close()
            #expect(Self.text(path) == "before\n" + (0..<1_000).map { "\($0)\n" }.joined())
            #expect(sink.written.value == 1_000)
            #expect(sink.dropped.value == 0)
            let fresh = try self.sink(.file("\(directory)/fresh"))
            fresh.close()
            var status = stat()
            #expect(stat("\(directory)/fresh", &status) == 0)
            #expect(status.st_mode & 0o077 == 0)
        }
    }

    @Test func `A file that was moved away is made again`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/lines"
            let sink = try sink(.file(path))
            sink.append([UInt8]("one\n".utf8))
            try blockUntil("the first line is written") { sink.written.value == 1 }
            #expect(rename(path, "\(path).1") == 0)
            sink.append([UInt8]("two\n".utf8))
            try blockUntil("the second line is written") { sink.written.value == 2 }
            sink.reopen()
            try blockUntil("the file is there again") { access(path, F_OK) == 0 }
            sink.append([UInt8]("three\n".utf8))
            sink.close()
            #expect(Self.text("\(path).1") == "one\ntwo\n")
            #expect(Self.text(path) == "three\n")
        }
    }

    @Test func `The old file goes on when the new one cannot be opened`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/lines"
            let sink = try sink(.file(path))
            #expect(rename(path, "\(path).1") == 0)
            #expect(mkdir(path, 0o700) == 0)
            sink.reopen()
            try blockUntil("the trouble is told") { troubles.all.withLock { $0 } == [EISDIR] }
            sink.append([UInt8]("one\n".utf8))
            try blockUntil("the line is written") { sink.written.value == 1 }
            #expect(troubles.all.withLock { $0 } == [EISDIR])
            #expect(rmdir(path) == 0)
            sink.reopen()
            try blockUntil("the end of the trouble is told") { troubles.all.withLock { $0 } == [EISDIR, nil] }
            sink.close()
            #expect(Self.text("\(path).1") == "one\n")
        }
    }

    @Test func `Only a regular file is opened`() throws {
        try withTemporaryDirectory { directory in
            #expect(mkfifo("\(directory)/pipe", 0o600) == 0)
            let reader = open("\(directory)/pipe", O_RDWR)
            defer { close(reader) }
            for path in ["\(directory)/pipe", "/dev/null", directory, "\(directory)/missing/lines"] {
                #expect(throws: FileError.self) { try self.sink(.file(path)) }
            }
        }
    }

    @Test func `What fits is kept and what is beyond is dropped, counted and said`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let filler = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
        while write(ends[1], filler, filler.count) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        let line = [UInt8]("0123456789abcde\n".utf8)
        let sink = try sink(.descriptor(ends[1]), byteCountMax: 10 * line.count)
        // The writer takes the first line and blocks in its write.
        sink.append(line)
        try blockUntil("the writer has taken the line") { sink.waitingCount == 0 }
        for _ in 0..<10 { sink.append(line) }
        #expect(sink.waitingCount == 10)
        sink.append(line)
        #expect(sink.waitingCount == 10)
        // Only now does the test read.
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        var read = ""
        var chunk = filler
        try blockUntil("the lost line is told: \(read)") {
            let count = Glibc.read(ends[0], &chunk, chunk.count)
            if count > 0 { read += String(decoding: chunk.prefix(count), as: UTF8.self) }
            return read.contains("lost 1\n")
        }
        #expect(read.split(separator: "\n").count { $0.hasSuffix("abcde") } == 11)
        #expect(sink.dropped.value == 1)
        sink.close()
        close(ends[0])
        close(ends[1])
    }

    @Test func `A full disk loses lines, which are counted, and trouble is told once`() throws {
        let full = open("/dev/full", O_WRONLY)
        let sink = try sink(.descriptor(full))
        for _ in 0..<3 {
            let before = sink.dropped.value
            sink.append([UInt8]("line\n".utf8))
            try blockUntil("the line is counted as dropped") { sink.dropped.value == before + 1 }
            // The disk is still full after that.
            sink.reopen()
        }
        #expect(troubles.all.withLock { $0 } == [ENOSPC])
        #expect(sink.written.value == 0)
        sink.close()
        close(full)
    }

    @Test func `A sink that nobody reads can be closed`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let sink = try sink(.descriptor(ends[1]))
        sink.append([UInt8](repeating: UInt8(ascii: "x"), count: 200_000) + [UInt8(ascii: "\n")])
        sink.close()
        sink.close()
        // Ends the writer's thread, which blocks in its write.
        signal(SIGPIPE, SIG_IGN)
        close(ends[0])
    }
}

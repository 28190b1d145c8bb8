import Base
import HTTP2
import Reactor
import Wire

// Pages of the side port, requested over HTTP/2. A page waits for its turn, and its memory and time count, as the
// answer to a call does.

extension GRPCSession {
    /// Nil: nobody waits for it any more.
    func askForPage(_ stream: GRPCStream) -> SessionEvent? {
        guard stream.state.begin() else { return nil }
        handedOut = (stream, 0)
        return .page(stream: stream.id, path: stream.headers.wholePath, authorization: stream.headers.authorization)
    }

    func appendPage(stream id: UInt32, _ page: HTTPResponse?, output: inout OutputQueue) {
        guard let stream = streams[id] else { return }
        guard let page else {
            refuse(stream, httpStatus: "405", allow: "POST")
            return pump(&output)
        }
        let hasBody = stream.headers.method == .get && !page.body.isEmpty
        if hasBody { answer.append(contentsOf: page.body) }
        stream.isPage = true
        stream.state.answerEnded()
        page.addHead(to: engine.fields)
        engine.respond(stream: id, hasBody: hasBody)
        sendAnswer(of: stream, &output)
    }
}

extension HTTPResponse {
    /// The answer to HEAD has the length that GET would have.
    fileprivate func addHead(to fields: HTTP2Fields) {
        fields.add(copying: ":status", "\(status)")
        fields.add(copying: "content-type", contentType)
        fields.add(copying: "content-length", "\(body.count)")
        fields.add("x-content-type-options", "nosniff")
        // Not bytes: the names are our own. HTTP/2 wants them in lower case (RFC 9113 §8.2).
        for field in self.fields { fields.add(copying: field.name.lowercased(), field.value) }
    }
}

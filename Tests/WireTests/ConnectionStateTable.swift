extension ConnectionStateTableTests {
    /// Each event, and below it the outcomes with their states.
    static let expected = """
        HELLO
          welcome: new
          close helloNotFirst: stock, stock unary, stock stopping
          close helloNotFirst, GOAWAY 3 protocolError: ext
          close helloNotFirst, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping
          -: closed
        REQUEST 7
          start 7 unary: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled, ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 closed
          start 7 remoteClosed: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 open
          start 7 remoteOpen: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 both flags
          respond 7 invalidFlags: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 5
          start 5 unary: new, stock, ext
          close streamInUse: stock unary, stock stopping
          close streamInUse, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping
          -: closed
        REQUEST 3
          start 3 unary: new
          respond 3 streamIDNotIncreasing: stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        REQUEST 8
          respond 8 invalidStreamID: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        REQUEST 7 oversized
          respond 7 frameTooLarge: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        RESPONSE 5
          close frameForOtherSide: new, stock, stock unary, stock stopping
          close frameForOtherSide, GOAWAY 3 protocolError: ext
          close frameForOtherSide, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        DATA 5
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5: ext open
          -: ext cancelled, closed
        DATA 5 empty
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5: ext open
          -: ext cancelled, closed
        DATA 5 last
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5 last: ext open
          -: ext cancelled, closed
        DATA 5 end
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          remoteClosed 5: ext open
          -: ext cancelled, closed
        DATA 5 no data
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          -: ext open, ext cancelled, closed
        DATA 5 no data with data
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          fail 5 invalidFlags: ext open
          -: ext cancelled, closed
        DATA 5 oversized
          respond 5 unknownStream: new, stock, ext
          fail 5 frameTooLarge: stock unary, stock stopping, ext unary, ext open, ext half, ext announced,
            ext stopping
          -: ext cancelled, closed
        DATA 3
          respond 3 unknownStream: new
          -: stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping, closed
        DATA 7
          respond 7 unknownStream: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        DATA 4
          respond 4 invalidStreamID: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        PING
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          pong 9: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping
          -: closed
        PING ack
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        PING short
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        PING oversized
          close controlFrameTooLarge: new, stock, stock unary, stock stopping
          close controlFrameTooLarge, GOAWAY 3 limitExceeded: ext
          close controlFrameTooLarge, GOAWAY 5 limitExceeded: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        GOAWAY
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close peerLeft: ext
          -: ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        CANCEL 5
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext cancelled, closed
          cancel 5 cancelled: ext unary, ext open, ext half, ext announced, ext stopping
        CANCEL 7
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        CANCEL 0
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        WINDOW 5
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        WINDOW 5 too much
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext cancelled, ext announced, ext stopping, closed
          close windowOverflow, GOAWAY 5 protocolError: ext open, ext half
        WINDOW 5 none
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        unknown 0x7F
          -: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping, closed
        unknown 0x80
          close unknownCriticalFrame: new, stock, stock unary, stock stopping
          close unknownCriticalFrame, GOAWAY 3 protocolError: ext
          close unknownCriticalFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        unknown oversized
          -: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping, closed
        beginDrain
          -: new, stock, stock unary, stock stopping, ext announced, ext stopping, closed
          reply GOAWAY 2147483647 shutdown: ext, ext unary, ext open, ext half, ext cancelled
        finishDrain
          close shutdown: new, stock
          -: stock unary, stock stopping, ext stopping, closed
          close shutdown, GOAWAY 3 shutdown: ext
          reply GOAWAY 5 shutdown: ext unary, ext open, ext half, ext cancelled, ext announced
        finished 5
          -: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled, ext announced, closed
          close shutdown: stock stopping, ext stopping
        ping
          -: new, stock, stock unary, stock stopping, closed
          reply PING 3: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping
        """
}
